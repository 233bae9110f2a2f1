package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	gamma = performatives.Agent("agent://gizmo.io/gamma")
	alice = performatives.Agent("human://acme.com/alice")
)

// some are all of these points, in the short form three of them.
func some(points []string) []string {
	if testing.Short() {
		return []string{points[0], points[len(points)/2], points[len(points)-1]}
	}
	return points
}

// TestStoppedAtEachStep stops a broker at each step of an act's way, starts
// another, and asks what is left: the act is entered once or, repeated, then;
// whatever follows from it is there; the session goes on.
func TestStoppedAtEachStep(t *testing.T) {
	t.Parallel()
	for _, act := range []struct{ name, body string }{
		{"OBSERVE", `{"subject":"x"}`},
		{"PROPOSE", `{"proposalId":"p1","type":"x","subject":"x","terms":{}}`},
		{"ESCALATE", `{"reason":"confidence-low","urgency":"low","context":"x"}`},
		{"ACCEPT", `{"referenceId":"k0"}`},
		{"CLOSE", `{}`}, // makes the agreement
	} {
		for _, point := range some(broker.Failpoints()) {
			t.Run(act.name+" "+point, func(t *testing.T) {
				t.Parallel()
				b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
				w := fault.NewWitness(t, b.URL)
				if _, err := b.Broker.Parts.Registry.Add(t.Context(), api.Card{Agent: alice}); err != nil {
					t.Fatal(err)
				}
				s := w.Open(alpha, beta, gamma)
				s.Say(beta, "PROPOSE", `{"proposalId":"p0","type":"x","subject":"x0","terms":{}}`)
				switch act.name {
				case "ACCEPT": // of a commitment, which makes the agreement
					s.Say(alpha, "ACCEPT", `{"referenceId":"p0"}`)
					s.Say(beta, "COMMIT", `{"commitmentId":"k0","referenceId":"p0","terms":{"obligations":[{"party":"`+string(beta)+`","action":"deliver"}]}}`)
					s.Say(gamma, "ACCEPT", `{"referenceId":"k0"}`)
				case "CLOSE":
					s.Say(alpha, "ACCEPT", `{"referenceId":"p0"}`)
				}

				ctx, cancel := context.WithCancel(t.Context())
				stopped := b.Broker.Command.StopAt(point)
				go func() { <-stopped; cancel() }()
				s.SayOnce(ctx, alpha, act.name, act.body)
				<-stopped
				b.Crash()
				b.Up()

				s.Again()
				state := s.State()
				switch act.name {
				case "ESCALATE":
					var found api.Escalations
					w.Call(api.EscalationList.Name, "{}", &found)
					if len(found.Escalations) != 1 || found.Escalations[0].Status != "open" {
						t.Errorf("the inbox of escalations has %+v", found)
					}
					s.Say(alice, "INFORM", `{"type":"resolution","data":{"escalationId":"`+string(found.Escalations[0].ID)+`","decision":"approved"}}`)
					s.Say(alpha, "OBSERVE", `{"subject":"on we go"}`)
				case "ACCEPT":
					leafOf(t, b, inclusion.Agreement, string(agreement.IDOf(s.ID, "p0")), 1)
				case "CLOSE":
					leafOf(t, b, inclusion.Session, string(s.ID), 2) // it comes after the agreement's
					leafOf(t, b, inclusion.Agreement, string(agreement.IDOf(s.ID, "p0")), 2)
					if state != "CLOSED" {
						t.Errorf("the session is %s", state)
					}
				default:
					s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
				}
				s.Check(alpha, beta, gamma)
				var found api.Sessions
				w.Call(api.SessionList.Name, `{"state":"`+s.State()+`"}`, &found)
				if len(found.Sessions) != 1 {
					t.Errorf("the list of sessions has %+v", found)
				}
			})
		}
	}
}

// leafOf waits until the public log has the leaf of an agreement or a session, and insists
// that it has so many in all.
func leafOf(t *testing.T, b *testkit.Broker, kind inclusion.Kind, id string, all int64) {
	t.Helper()
	key, err := inclusion.ParseKey(b.Broker.Parts.Ledger.VerifierKey())
	testkit.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var proof *inclusion.Proof
	for proof == nil {
		if proof, err = b.Broker.Parts.Ledger.Proof(ctx, kind, id); err != nil {
			t.Fatalf("the log does not have the leaf of %s %s: %v", kind, id, err)
		}
	}
	testkit.Must(t, proof.Verify(key))
	if c, err := inclusion.Open(proof.Checkpoint, key); err != nil || c.Tree.N != all {
		t.Errorf("the log has %d leaves, %v", c.Tree.N, err)
	}
}

// TestCrashes takes the server away under a broker that is busy, over and over.
func TestCrashes(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	s := w.Open(alpha, beta, gamma)
	for range 4 {
		said := make(chan bool)
		go func() {
			defer close(said)
			for range 40 {
				s.Say(alpha, "OBSERVE", `{"subject":"x"}`)
				s.Say(beta, "INFORM", `{"type":"fact","data":1}`)
				said <- true
			}
		}()
		for range 10 {
			<-said
		}
		go func() {
			for range said {
			}
		}()
		b.Crash()
		b.Up()
		<-said
		for range said {
		}
	}
	s.Again()
	s.Check(alpha, beta, gamma)
}
