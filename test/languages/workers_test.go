//go:build languages

package languages

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// said counts what a principal sends to the broker.
type said struct{ submits, calls atomic.Int64 }

// counts counts from now on, as the broker's account sees it.
func counts(t *testing.T, w *testkit.World, a performatives.Agent) *said {
	t.Helper()
	key, err := server.ReadSeed(filepath.Join(w.Data, server.BrokerLogin))
	testkit.Must(t, err)
	nc := w.Plain(testkit.Bare(t, key))
	var n said
	for subject, count := range map[string]*atomic.Int64{".submit.*": &n.submits, ".api.>": &n.calls} {
		_, err := nc.Subscribe("asp.agent."+a.Token()+subject, func(*nats.Msg) { count.Add(1) })
		testkit.Must(t, err)
	}
	testkit.Must(t, nc.Flush())
	return &n
}

func world(t *testing.T) (*testkit.World, context.Context) {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	t.Cleanup(cancel)
	return testkit.NewWorld(t, testkit.Options{}), ctx
}

// Two workers of each agent make one deal: each act is there once, whoever was faster.
func TestTwoWorkersOfEach(t *testing.T) {
	w, ctx := world(t)
	one, two := sells(t, w, w.URL), sells(t, w, w.URL)
	first, second := buys(t, w), buys(t, w)
	id := agreed(ctx, t, w, first.says(ctx), 6)
	if again := agreed(ctx, t, w, second.says(ctx), 6); again != id {
		t.Errorf("two workers have made %s and %s", id, again)
	}
	one.stop()
	two.stop()
}

// A broker that is killed and comes back, and workers that are killed and start anew, say nothing twice.
func TestWorkersSurviveKills(t *testing.T) {
	w, ctx := world(t)
	n := counts(t, w, seller)
	sold := sells(t, w, w.URL)
	testkit.Eventually(t, "the seller asks the broker", func() bool { return n.calls.Load() > 0 })
	bought := buys(t, w)
	mine := w.Client(seller)
	_, err := mine.Await(ctx, performatives.Propose) // the invitation
	testkit.Must(t, err)
	w.Crash()
	w.Up()
	bought.cmd.Process.Kill() //nolint:errcheck // it may be done
	<-bought.ended
	sold.stop()
	sold = sells(t, w, w.URL)
	agreed(ctx, t, w, buys(t, w).says(ctx), 6)
	agreed(ctx, t, w, buys(t, w).says(ctx), 6) // once more: it is done
	sold.stop()
}

// An invitation that is withdrawn, an offer that expires and one whose counter-offer is refused reach a
// seller that was not there: it dies of none, tries what is refused at most twice, and asks no more while nothing happens.
func TestSellerSurvivesWhatItIsSent(t *testing.T) {
	w, _ := world(t)
	alpha := w.Principal(buyer)
	sold := sells(t, w, w.URL)
	alpha.Call("schema.put", `{"name":"cheap-v1","schema":{"type":"object","properties":{"pricePerImage":{"type":"number","maximum":5}}}}`)
	n := counts(t, w, seller)

	testkit.Must(t, sold.cmd.Process.Signal(syscall.SIGSTOP))
	withdrawn := testkit.NewSession()
	alpha.Say(withdrawn, testkit.Invitation(seller))
	alpha.Say(withdrawn, &performatives.WithdrawBody{ReferenceID: "inv"})
	testkit.Must(t, sold.cmd.Process.Signal(syscall.SIGCONT))

	id := testkit.NewSession()
	alpha.Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "images", Terms: fmt.Appendf(nil, `{"participants":[%q],"schemas":["cheap-v1"]}`, seller)})
	state := func(want string) {
		t.Helper()
		testkit.Eventually(t, "the session is "+want, func() bool {
			return strings.Contains(string(alpha.Call("session.snapshot", fmt.Sprintf(`{"sessionId":%q}`, id)).Data), want)
		})
	}
	state(`"state":"INTRODUCED"`)
	testkit.Must(t, sold.cmd.Process.Signal(syscall.SIGSTOP))
	soon := time.Now().Add(time.Second).UTC().Truncate(time.Millisecond)
	alpha.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "images", Terms: []byte(`{"pricePerImage":5}`), ValidUntil: &soon})
	state(`"status":"expired"`)
	before, asked := n.submits.Load(), n.calls.Load()
	testkit.Must(t, sold.cmd.Process.Signal(syscall.SIGCONT))
	testkit.Eventually(t, "the seller is done with the expired offer", func() bool { return n.calls.Load() > asked })

	alpha.Say(id, &performatives.ProposeBody{ProposalID: "p2", Type: "service-agreement", Subject: "images", Schema: "cheap-v1", Terms: []byte(`{"pricePerImage":5}`)})
	testkit.Eventually(t, "the seller's counter-offer is refused", func() bool { return n.submits.Load() > before && n.calls.Load() > asked+1 })
	submits, calls := n.submits.Load(), n.calls.Load()
	// For five seconds nothing happens. The seller may begin one wait, to be told of what it has just read.
	if waited := alpha.Call("turn.wait", fmt.Sprintf(`{"sessionId":%q,"since":4,"seconds":5}`, id)); !strings.Contains(string(waited.Data), `"nothing":true`) {
		t.Errorf("the buyer is told %s", waited.Data)
	}
	if again, asks := n.submits.Load()-submits, n.calls.Load()-calls; again > 1 || asks > 2 {
		t.Errorf("while nothing happens the seller sends %d acts and %d requests", again, asks)
	}
	alpha.Say(id, &performatives.ProposeBody{ProposalID: "p3", Type: "service-agreement", Subject: "images", Terms: []byte(`{"pricePerImage":4}`)})
	state(`"pricePerImage":6`)
	t.Logf("the seller has sent %d acts and %d requests: %s", n.submits.Load(), n.calls.Load(), sold.out.String())
	if sold.stop(); n.submits.Load() > 5 {
		t.Errorf("the seller sends %d acts, want its ACCEPT, a COUNTER of each offer, and of the refused one perhaps another", n.submits.Load())
	}
}
