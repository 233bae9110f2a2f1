package adversary

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestNonParticipantsLearnNothing: a session that is not there and one of others are answered with
// the same bytes, whatever is asked (PROTOCOL.md §9).
func TestNonParticipantsLearnNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	escalation := string(w.Principal(alpha).Say(w.opens(alpha, beta), &performatives.EscalateBody{
		Reason: "authority-limit", Urgency: "high", Context: []byte(`"much"`),
	}).Message)
	closed := w.opens(alpha, beta)
	w.Principal(alpha).Say(closed, &performatives.CloseBody{})
	link := &performatives.Link{Sequence: 4, PreviousHash: performatives.NoHash}
	acts := map[string]performatives.Body{
		"PROPOSE": testkit.Offer("x", 1), "ACCEPT": &performatives.AcceptBody{ReferenceID: "p1"},
		"REJECT":  &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"},
		"COUNTER": &performatives.CounterBody{ProposalID: "x", ReferenceID: "p1", Terms: []byte(`{"price":1}`)},
		"INFORM":  testkit.Fact("x"), "a ruling": testkit.Ruling(performatives.MessageID(escalation), "approved"),
		"QUERY":    &performatives.QueryBody{QueryID: "q", QueryType: "x", Subject: "x"},
		"CLARIFY":  &performatives.ClarifyBody{ReferenceID: "p1", Questions: []performatives.Question{{Field: "terms.price", Question: "why?"}}},
		"COMMIT":   &performatives.CommitBody{CommitmentID: "c", ReferenceID: "p1"},
		"DELEGATE": &performatives.DelegateBody{TargetAgent: delta, Scope: "x", Authority: "full"},
		"ESCALATE": &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: []byte(`"x"`)},
		"WITHDRAW": &performatives.WithdrawBody{ReferenceID: "p1"}, "OBSERVE": &performatives.ObserveBody{Subject: "x"},
		"CLOSE": &performatives.CloseBody{},
	}
	w.harmless(func() {
		for _, a := range []performatives.Agent{eve, delta, bob, mallory, alice} {
			p := w.Principal(a)
			for _, id := range []performatives.SessionID{w.deal, closed} {
				for name, body := range acts {
					for _, linked := range []*performatives.Link{nil, link} {
						none := testkit.NewSession()
						chain := func(d *performatives.Draft) { d.Link = linked }
						alike(t, fmt.Sprintf("%s of %s, linked %t", name, a, linked != nil),
							p.Submit(id, p.Envelope(id, body, chain)), p.Submit(none, p.Envelope(none, body, chain)), string(id), string(none))
					}
				}
				for verb, members := range map[string][]string{
					api.SessionGet.Name: {""}, api.SessionConsumer.Name: {""}, api.SessionMessages.Name: {"", `,"since":1`, `,"since":1000`, `,"limit":1`},
				} {
					for _, more := range members {
						none := testkit.NewSession()
						ask := func(id performatives.SessionID) *nats.Msg {
							return p.Call(verb, fmt.Sprintf(`{"sessionId":%q%s}`, id, more))
						}
						alike(t, verb+more, ask(id), ask(none), string(id), string(none))
					}
				}
			}
		}
		for _, a := range []performatives.Agent{eve, delta, bob, mallory, carol} {
			p, none := w.Principal(a), string(testkit.NewID())
			alike(t, "escalation.get", p.Call(api.EscalationGet.Name, fmt.Sprintf(`{"escalationId":%q}`, escalation)),
				p.Call(api.EscalationGet.Name, fmt.Sprintf(`{"escalationId":%q}`, none)), escalation, none)
			for verb, empty := range map[string]string{
				api.SessionList.Name: `{"sessions":[]`, api.EscalationList.Name: `{"escalations":[]}`,
			} {
				for _, request := range []string{"", "{}", `{"limit":1000}`} {
					if m := p.Call(verb, request); !strings.HasPrefix(string(m.Data), empty) {
						t.Errorf("%s shows %s: %s", verb, a, m.Data)
					}
				}
			}
			if m := p.Call(api.EscalationList.Name, `{"status":"all"}`); strings.Contains(string(m.Data), escalation) {
				t.Errorf("escalation.list shows %s: %s", a, m.Data)
			}
		}
	})
}

// alike holds an answer about what others have against one about what is not there.
func alike(t *testing.T, what string, another, none *nats.Msg, foreignID, noneID string) {
	t.Helper()
	want(t, what, none, session.UnknownSession)
	if !bytes.Equal(another.Data, none.Data) || !cmp.Equal(another.Header, none.Header) {
		t.Errorf("%s: an outsider can tell\n%s %v from\n%s %v", what, another.Data, another.Header, none.Data, none.Header)
	}
	for _, id := range []string{foreignID, noneID} {
		if strings.Contains(string(none.Data), id) || strings.Contains(string(another.Data), id) {
			t.Errorf("%s: the answer names %s", what, id)
		}
	}
}

// BenchmarkNonParticipants is how long an outsider waits for its answer about a session that is not
// there, and about one of others. What differs is for people to look at: a figure is no test.
func BenchmarkNonParticipants(b *testing.B) {
	w := newWorld(b)
	p := w.Principal(eve)
	for _, c := range []struct {
		name string
		id   func() performatives.SessionID
	}{
		{"none", testkit.NewSession},
		{"another", func() performatives.SessionID { return w.deal }},
	} {
		for name, ask := range map[string]func(performatives.SessionID){
			"read": func(id performatives.SessionID) { p.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, id)) },
			"submit": func(id performatives.SessionID) {
				p.Submit(id, p.Envelope(id, &performatives.AcceptBody{ReferenceID: "p1"}))
			},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				var took []float64
				for b.Loop() {
					id := c.id()
					start := time.Now()
					ask(id)
					took = append(took, float64(time.Since(start).Microseconds()))
				}
				slices.Sort(took)
				b.ReportMetric(took[len(took)/2], "µs/p50")
				b.ReportMetric(took[len(took)*9/10], "µs/p90")
			})
		}
	}
}
