package registry

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// After any changes agents are in the order of their URIs and of their trust, as if they had
// been sorted anew; no human is among them.
func TestOrders(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	c := newCache(func(api.Card) bool { return false })
	cards := map[performatives.Agent]api.Card{}
	for revision := range uint64(400) {
		card := api.Card{Agent: performatives.Agent(fmt.Sprintf("agent://a.b/%d", random.IntN(40)))}
		switch random.IntN(6) {
		case 0:
			c.remove(card.Agent, revision+1)
			delete(cards, card.Agent)
			continue
		case 1:
			card.Kind = performatives.KindHuman
		case 2:
		default:
			trust := float64(random.IntN(5))
			card.Registry.TrustScore = &trust
		}
		c.put(card, revision+1)
		cards[card.Agent] = card
		if revision < 100 || revision%7 > 0 { // the first read sorts what is there
			continue
		}
		var want []ranked
		for _, card := range cards {
			if card.Kind != performatives.KindHuman {
				want = append(want, rankedCard(card))
			}
		}
		slices.SortFunc(want, byURI)
		if got := c.after(""); !slices.Equal(got, want) {
			t.Fatalf("by URI: %v, want %v", got, want)
		}
		if got := c.after(want[3].agent); !slices.Equal(got, want[4:]) {
			t.Fatalf("after %s: %v", want[3].agent, got)
		}
		slices.SortFunc(want, byTrust)
		for _, least := range []float64{0, 2} {
			trusting := want
			if least > 0 {
				trusting = slices.DeleteFunc(slices.Clone(want), func(r ranked) bool { return r.trust < least })
			}
			trusting = trusting[:min(9, len(trusting))]
			if got := c.trusted(9, least); !slices.EqualFunc(got, trusting, func(card api.Card, r ranked) bool { return card.Agent == r.agent }) {
				t.Fatalf("by trust: %v, want %v", got, trusting)
			}
		}
	}
}
