package fault_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

const alice = performatives.Agent("human://acme.com/alice")

// fatal are acts that a broker dies of, and what has to be there when they are entered: nothing more
// follows from a remark than inbox copies, from an ESCALATE an item and its deadlines, from a CLOSE
// that nothing moves any more.
var fatal = []struct {
	act, body string
	after     func(*fault.Witness, *fault.Session)
}{
	{"OBSERVE", `{"subject":"x"}`, func(_ *fault.Witness, s *fault.Session) {
		s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
	}},
	{"ESCALATE", `{"reason":"confidence-low","urgency":"low","context":"x"}`, func(w *fault.Witness, s *fault.Session) {
		var found api.Escalations
		w.Call(api.EscalationList.Name, "{}", &found)
		items := slices.DeleteFunc(found.Escalations, func(i api.EscalationItem) bool { return i.Session != s.ID })
		if len(items) != 1 || items[0].Status != "open" || s.State() != "ESCALATED" {
			w.Errorf("session %s is %s; the inbox of escalations has %+v", s.ID, s.State(), items)
			return
		}
		s.Say(alice, "INFORM", fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":"approved"}}`, items[0].ID))
		s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
	}},
	{"CLOSE", `{}`, func(w *fault.Witness, s *fault.Session) {
		var found api.Sessions
		w.Call(api.SessionList.Name, `{"state":"CLOSED"}`, &found)
		listed := slices.ContainsFunc(found.Sessions, func(l api.SessionSummary) bool { return l.Session == s.ID })
		if !listed || s.State() != "CLOSED" {
			w.Errorf("session %s is %s; the list of closed ones is %+v", s.ID, s.State(), found)
		}
		if code := s.Code(gamma, "OBSERVE", `{"subject":"one more thing"}`); code != "wrong_state" {
			w.Errorf("session %s: an act after the CLOSE is answered %q", s.ID, code)
		}
	}},
}

// TestKilledAtEachPoint kills a broker's process at each point of the way of an
// act. With its server in it, the broker is started again; at a server elsewhere,
// another broker takes over, though nobody says anything more: each point with one of the acts.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for i, act := range fatal {
		t.Run(act.act, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			c := startNode(t, data, "127.0.0.1:-1")
			w := fault.NewWitness(t, c.URL)
			w.Call(api.AgentAdd.Name, fmt.Sprintf(`{"card":{"agentId":%q}}`, alice), &api.Card{})
			for _, point := range broker.Failpoints() { // of the same store: what was there before stays as it is
				s := w.Open(parties...)
				c.DieAt(point)
				dyingOf(t, c, []*fault.Session{s}, act.act, act.body)
				c = again(t, data, c)
				s.Again()
				act.after(w, s)
				s.Check(parties...)
				if t.Failed() {
					t.Fatal("killed ", point)
				}
			}
			verifyAll(t, c.URL)
		})
		t.Run(act.act+", two brokers", func(t *testing.T) {
			t.Parallel()
			at := testkit.StartServerProcess(t, onDisk)
			c := startBroker(t, at)
			w := fault.NewWitness(t, at.URL())
			w.Call(api.AgentAdd.Name, fmt.Sprintf(`{"card":{"agentId":%q}}`, alice), &api.Card{})
			for j, point := range broker.Failpoints() {
				if j%len(fatal) != i {
					continue
				}
				other := startBroker(t, at)
				var sessions []*fault.Session
				for range homes { // each broker is the home of some
					sessions = append(sessions, w.Open(parties...))
				}
				c.DieAt(point)
				sessions = sessions[:dyingOf(t, c, sessions, act.act, act.body)]
				died := time.Now()
				for _, s := range sessions {
					s.Untouched(beta, gamma)
				}
				t.Logf("killed %s: everything was delivered %s after the death", point, time.Since(died))
				for _, s := range sessions {
					s.Again()
					act.after(w, s)
					s.Check(parties...)
				}
				if t.Failed() {
					t.Fatal("killed ", point)
				}
				c = other
			}
			verifyAll(t, at.URL())
		})
	}
}

// homes is how many sessions there are where two brokers share them.
const homes = 16

// dyingOf says an act in one session after the other until a broker is dead of
// it, and returns in how many.
func dyingOf(t *testing.T, c *testkit.BrokerProcess, sessions []*fault.Session, act, body string) (said int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dead := make(chan struct{})
	go func() { c.Dies(); cancel(); close(dead) }()
	for _, s := range sessions {
		if ctx.Err() != nil {
			break
		}
		s.SayOnce(ctx, alpha, act, body)
		said++
	}
	<-dead
	return said
}
