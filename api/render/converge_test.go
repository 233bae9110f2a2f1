package render_test

import (
	"slices"
	"testing"

	"github.com/parley-asp/parley/performatives"
)

// In convergent/1 an open offer waits for who has still to accept it, its author too, and once all have for who may
// commit, as the session does; another one that is live waits for nobody.
func TestConvergingOfferWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.open("cups", `{"mode":"convergent/1"}`)
	s.says(alpha, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "cups", Terms: terms(`{"price":500}`)})
	expect := func(by performatives.Agent, want ...string) {
		t.Helper()
		v := s.snapshot(by)
		var said []string
		for _, o := range v.Open {
			if said = append(said, o.Text); len(o.For) > 0 && !slices.Equal(o.For, v.Waiting.For) {
				t.Errorf("%s waits for %v, and the session for %v", o.ID, o.For, v.Waiting.For)
			}
		}
		if !slices.Equal(said, want) {
			t.Errorf("for %s open is %q, want %q", by, said, want)
		}
	}
	expect(beta, "the offer of alpha, price 500, waits for alpha, you")
	s.says(beta, &performatives.AcceptBody{ReferenceID: "p1"})
	expect(beta, "the offer of alpha, price 500, waits for alpha")
	expect(alpha, "your offer, price 500, waits for you")
	s.says(alpha, &performatives.AcceptBody{ReferenceID: "p1"})
	expect(beta, "the offer of alpha, price 500, waits for alpha")
	s.says(beta, &performatives.ProposeBody{ProposalID: "p2", Type: "x", Subject: "cups", Terms: terms(`{"price":450}`)})
	expect(alpha, "your offer, price 500, waits for you", "the offer of beta, price 450, is open")
}
