package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// A leader that hears nothing of the others believes for up to 20 seconds that it leads, while they
// may have chosen another. What is asked of the broker beside it meanwhile is not answered from what was.
func TestLeaderWithoutOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.broker()
	w.connects()
	buyer, seller := w.joins(alpha), w.joins(beta)
	s, err := buyer.Invite(w.ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "a cluster"})
	w.must(err)
	leader := w.Named(w.leader(api.SessionsStream))
	w.brokerAt("nats://" + leader.Address)
	first.kill()
	login, err := nats.NkeyOptionFromSeed(w.data + "/" + server.OperatorSeed)
	w.must(err)
	nc, err := nats.Connect("nats://"+leader.Address, login, nats.CustomInboxPrefix("_INBOX.operator"),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1))
	w.must(err)
	w.Cleanup(nc.Close)
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	answered := func() bool {
		<-pace.C
		m, err := nc.RequestWithContext(w.ctx, api.OperatorCall(api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, s.ID()))
		w.must(err)
		code := m.Header.Get(api.ErrorCodeHeader)
		if code != "" && code != "503" {
			w.Fatalf("session.get: %s %s", code, m.Data)
		}
		return code == ""
	}
	_, err = seller.Session(s.ID()).Accept(w.ctx, "inv")
	w.must(err)
	_, err = s.Await(w.ctx, performatives.Accept)
	w.must(err)
	for !answered() { // what follows from the act is done before
	}
	for _, other := range w.Servers {
		if other != leader {
			w.must(other.Pause())
		}
	}
	const acknowledged = 3 * time.Second // that long before may be what vouches for the leader
	for cut, refused := time.Now(), 0; refused < 3; {
		asked := time.Since(cut)
		switch yes := answered(); {
		case !yes:
			refused++
		case asked > acknowledged:
			w.Fatalf("asked %s after the others were gone, it answers", asked)
		}
	}
	for _, other := range w.Servers {
		if other != leader {
			w.must(other.Resume())
		}
	}
	for !answered() {
	}
}
