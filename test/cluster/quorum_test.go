package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// lost is how long a request may take. What is asked while the broker's connection moves to another server is lost.
const lost = 10 * time.Second

// A leader that receives nothing from the others believes for up to 20 seconds that it leads, while they
// may have chosen another. What is asked of the broker beside it meanwhile is not answered from what was.
func TestLeaderWithoutOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.broker()
	w.connects()
	buyer, seller := w.joins(alpha), w.joins(beta)
	s, err := buyer.Invite(w.ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "a cluster"})
	testkit.Must(w, err)
	leader := w.Named(w.leader(api.SessionsStream))
	w.brokerAt(leader.URL())
	first.Kill()
	login, err := nats.NkeyOptionFromSeed(w.data + "/" + server.OperatorSeed)
	testkit.Must(w, err)
	nc, err := nats.Connect(leader.URL(), login, nats.CustomInboxPrefix("_INBOX.operator"),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1),
		nats.IgnoreDiscoveredServers()) // its first login may fail, while the broker starts, and it must not try it at another
	testkit.Must(w, err)
	w.Cleanup(nc.Close)
	asked := time.Now()
	answered := func() bool {
		for {
			asked = time.Now()
			m, err := nc.Request(api.OperatorCall(api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, s.ID()), lost)
			switch {
			case errors.Is(err, nats.ErrNoResponders):
				return false // the broker tries another server
			case errors.Is(err, nats.ErrTimeout) && w.ctx.Err() == nil:
				continue
			}
			testkit.Must(w, err)
			code := m.Header.Get(api.ErrorCodeHeader)
			if code != "" && code != "503" {
				w.Fatalf("session.get: %s %s", code, m.Data)
			}
			return code == ""
		}
	}
	_, err = seller.Session(s.ID()).Accept(w.ctx, "inv")
	testkit.Must(w, err)
	_, err = s.Await(w.ctx, performatives.Accept)
	testkit.Must(w, err)
	testkit.Eventually(w, "the broker beside the leader answers", answered) // what follows from the act is done before
	for _, other := range w.Servers {
		if other != leader {
			other.Pause()
		}
	}
	const acknowledged = 3 * time.Second // that long before may be what vouches for the leader
	cut, refused := time.Now(), 0
	testkit.Eventually(w, "the broker beside the leader refuses", func() bool {
		switch yes := answered(); {
		case !yes:
			refused++
		case asked.Sub(cut) > acknowledged:
			w.Fatalf("asked %s after the others were gone, it answers", asked.Sub(cut))
		}
		return refused == 3
	})
	for _, other := range w.Servers {
		if other != leader {
			other.Resume()
		}
	}
	testkit.Eventually(w, "the broker beside the leader answers again", answered)
}
