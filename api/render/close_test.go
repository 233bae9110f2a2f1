package render_test

import (
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// snapshot is that of an agent.
func (s *stage) snapshot(a performatives.Agent) api.Snapshot {
	v := api.ViewSnapshot(&s.state, performatives.Member{Agent: a}, s.now, s.state.Moves(a, session.Event{At: s.now, Known: known(), Policy: policy}),
		func(performatives.Agent) (api.Card, bool) { return api.Card{}, false })
	render.Say(&v)
	return v
}

// closing is what the snapshot of each party says that its CLOSE does.
func (s *stage) closing() map[performatives.Agent]string {
	s.t.Helper()
	said := map[performatives.Agent]string{}
	for _, a := range []performatives.Agent{alpha, beta, twin} {
		for _, m := range s.snapshot(a).Moves {
			if m.Performative == "CLOSE" {
				said[a] = m.Says
			}
		}
	}
	return said
}

// COMMITMENTS.md C1: who closes a session with agreed terms is told of the agreement that this makes, also who
// has no part in the offer; where it makes none, it is not said.
func TestCloseSaysWhatItAgreesTo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.says(alpha, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "cups", Terms: terms(`{"participants":["` + string(beta) + `","` + string(twin) + `"]}`),
	})
	s.says(beta, &performatives.AcceptBody{ReferenceID: "inv"})
	s.says(twin, &performatives.AcceptBody{ReferenceID: "inv"})
	s.says(alpha, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "cups", Terms: terms(`{"price":500}`)})
	expect := func(what string) {
		t.Helper()
		said := s.closing()
		if len(said) != 3 {
			t.Errorf("who may close: %v", said)
		}
		for a, says := range said {
			if !strings.Contains(says, what) || strings.Contains(says, "agreement") != strings.Contains(what, "agreement") {
				t.Errorf("to %s CLOSE is %q, want %q", a, says, what)
			}
		}
	}
	const agrees = "end the session, which makes the agreement: price 500"
	expect("end the session")
	s.says(beta, &performatives.AcceptBody{ReferenceID: "p1"})
	expect(agrees)
	s.says(beta, &performatives.CommitBody{CommitmentID: "c1", ReferenceID: "p1", Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{{Party: beta, Action: "ship"}}}})
	expect("end the session")
	s.says(beta, &performatives.WithdrawBody{ReferenceID: "c1"})
	expect(agrees)
	if s.says(twin, &performatives.CloseBody{}); s.state.AgreementCount() != 1 {
		t.Errorf("the CLOSE made %d agreements", s.state.AgreementCount())
	}
}
