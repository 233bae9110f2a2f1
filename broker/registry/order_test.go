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
	c := newCache(func(api.Card) bool { return false }, false)
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
		if got := c.after("", 999); !slices.Equal(got, want) {
			t.Fatalf("by URI: %v, want %v", got, want)
		}
		if got := c.after(want[3].agent, 999); !slices.Equal(got, want[4:]) {
			t.Fatalf("after %s: %v", want[3].agent, got)
		}
		if got := c.after(want[3].agent, 2); !slices.Equal(got, want[4:6]) {
			t.Fatalf("two after %s: %v", want[3].agent, got)
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

// All agents come, each once, however many are looked up at once; also if one is gone meanwhile.
func TestAgentsInParts(t *testing.T) {
	t.Parallel()
	r := &Registry{cache: newCache(func(api.Card) bool { return false }, false)}
	agent := func(n int) performatives.Agent { return performatives.Agent(fmt.Sprintf("agent://a.b/%04d", n)) }
	for n := range 2*atOnce + 1 {
		r.cache.put(api.Card{Agent: agent(n)}, uint64(n+1))
	}
	for from, after := range []performatives.Agent{"", agent(0), agent(1)} {
		at := from
		for card := range r.Agents(after) {
			if card.Agent != agent(at) {
				t.Fatalf("after %q: %s, want %s", after, card.Agent, agent(at))
			}
			at++
		}
		if at != 2*atOnce+1 {
			t.Errorf("after %q: %d agents", after, at-from)
		}
	}
	seen := 0
	for card := range r.Agents("") {
		if seen++; card.Agent == agent(atOnce-1) {
			r.cache.remove(card.Agent, 9_999)
			r.cache.remove(agent(atOnce), 9_999)
		}
	}
	if seen != 2*atOnce {
		t.Errorf("%d agents, want %d", seen, 2*atOnce)
	}
}
