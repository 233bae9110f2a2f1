package session_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Two to 1,000 peers, besides a coordinator; at 1,000 they converge like ten.
func TestConvergentCrowd(t *testing.T) {
	for _, c := range []struct {
		policy string
		others int
		opens  bool
	}{
		{`{}`, 999, true}, {`{}`, 1000, false}, {`{}`, 1001, false},
		{`{"initiatorRole":"coordinator"}`, 1000, true}, {`{"initiatorRole":"coordinator"}`, 1001, false},
	} {
		s := newBench(t)
		participants := make([]string, c.others)
		for i := range participants {
			participants[i] = fmt.Sprintf("agent://many.org/a%d", i)
			s.registry[performatives.Agent(participants[i])] = performatives.Member{Agent: performatives.Agent(participants[i])}
		}
		_, err := session.Step(s.state, s.message(principals["alpha"], &performatives.ProposeBody{
			ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "many",
			Terms: jsontext.Value(jsonOf(map[string]any{"mode": "convergent/1", "participants": participants, "policy": jsontext.Value(c.policy)})),
		}))
		if code := refusal(err); (code == "") != c.opens || !c.opens && code != session.ModeViolation {
			t.Errorf("%d and an inviter with %s: %v", c.others, c.policy, err)
		}
	}
	s := newBench(t)
	peers := s.opensIn("convergent/1", 999)
	s.crowds(peers, 20)
	for i, a := range append(peers, principals["alpha"]) {
		if phase := "Negotiating"; i%100 == 99 && s.phase(t) != phase {
			t.Fatalf("not %s before %s has accepted", phase, a)
		}
		s.happens(a, &performatives.AcceptBody{ReferenceID: "p7"})
	}
	if phase := s.phase(t); phase != "Converged" {
		t.Errorf("all have accepted: %s", phase)
	}
}

func (s *bench) phase(t *testing.T) string {
	t.Helper()
	var shown struct{ Phase string }
	if err := json.Unmarshal(partOf(api.ViewSession(&s.state, s.now), "projection"), &shown, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	return shown.Phase
}

// 1,000 participants and 10,000 offers, all with the same terms: an act costs
// what it costs with ten.
func BenchmarkConvergent(b *testing.B) {
	for _, others := range []int{9, 999} {
		for _, offers := range []int{10, 10_000} {
			s := newBench(b)
			peers := s.opensIn("convergent/1", others)
			s.crowds(peers, offers)
			for _, body := range []performatives.Body{
				&performatives.ProposeBody{ProposalID: "new", Type: "data-exchange", Subject: "s", Terms: terms(1)},
				&performatives.CounterBody{ProposalID: "new", ReferenceID: "p0", Terms: terms(1)},
				&performatives.AcceptBody{ReferenceID: "p1"},
				&performatives.RejectBody{ReferenceID: "p0", Code: "unspecified", Reason: "no", Terminal: true},
			} {
				b.Run(fmt.Sprintf("%s/participants=%d/offers=%d", body.Act(), others+1, offers), func(b *testing.B) {
					steps(b, s.state, s.message(peers[0], body))
				})
			}
			b.Run(fmt.Sprintf("COMMIT/participants=%d/offers=%d", others+1, offers), func(b *testing.B) {
				all := *s
				all.stage = &stage{t: b, state: s.state, registry: s.registry, terms: s.terms, now: s.now, messages: s.messages}
				for _, a := range append(peers, principals["alpha"]) {
					all.happens(a, &performatives.AcceptBody{ReferenceID: "p0"})
				}
				steps(b, all.state, all.message(principals["alpha"], &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p0"}))
			})
		}
	}
}

// crowds puts so many offers with the same terms on the table; everybody has
// accepted one or another, and many were rejected.
func (s *bench) crowds(peers []performatives.Agent, offers int) {
	s.b.Helper()
	for i := range offers {
		s.happens(peers[i%len(peers)], &performatives.ProposeBody{ProposalID: fmt.Sprintf("p%d", i), Type: "data-exchange", Subject: "s", Terms: terms(1)})
		if i%2 == 1 {
			s.happens(peers[i*7%len(peers)], &performatives.RejectBody{ReferenceID: fmt.Sprintf("p%d", i), Code: "unspecified", Reason: "no"})
		}
	}
	for i, a := range peers {
		s.happens(a, &performatives.AcceptBody{ReferenceID: fmt.Sprintf("p%d", i%offers)})
	}
}
