package registry

import (
	"cmp"
	"math"
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An order keeps agents sorted, so that nobody has to sort all cards for an answer. It is
// sorted when it is first read, and kept so from then on. No human is in it.
type order struct {
	compare func(a, b ranked) int
	agents  []ranked
	sorted  bool
}

// ranked is what agents are sorted by. One without a trust score comes after all others.
type ranked struct {
	agent performatives.Agent
	trust float64
}

func byURI(a, b ranked) int { return cmp.Compare(a.agent, b.agent) }

func byTrust(a, b ranked) int { return cmp.Or(cmp.Compare(b.trust, a.trust), byURI(a, b)) }

func rankedCard(card api.Card) ranked { return ranked{card.Agent, trust(card)} }

func trust(card api.Card) float64 {
	if card.Registry.TrustScore == nil {
		return math.Inf(-1)
	}
	return *card.Registry.TrustScore
}

func (o *order) add(card api.Card) {
	if !o.sorted || card.Kind == performatives.KindHuman {
		return
	}
	one := rankedCard(card)
	if i, found := slices.BinarySearchFunc(o.agents, one, o.compare); !found {
		o.agents = slices.Insert(o.agents, i, one)
	}
}

func (o *order) remove(card api.Card) {
	if i, found := slices.BinarySearchFunc(o.agents, rankedCard(card), o.compare); found {
		o.agents = slices.Delete(o.agents, i, i+1)
	}
}

// inOrder sorts an order that was not read yet, and then hands it to read, which keeps
// nothing of it.
func (c *cache) inOrder(o *order, read func([]ranked)) {
	c.mu.RLock()
	if o.sorted {
		defer c.mu.RUnlock()
		read(o.agents)
		return
	}
	c.mu.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !o.sorted {
		for _, card := range c.cards {
			if card.Kind != performatives.KindHuman {
				o.agents = append(o.agents, rankedCard(card))
			}
		}
		slices.SortFunc(o.agents, o.compare)
		o.sorted = true
	}
	read(o.agents)
}

// after is at most so many agents after one, by URI.
func (c *cache) after(cursor performatives.Agent, most int) (agents []ranked) {
	c.inOrder(&c.uris, func(all []ranked) {
		i, found := slices.BinarySearchFunc(all, ranked{agent: cursor}, byURI)
		if found {
			i++
		}
		agents = slices.Clone(all[i:min(i+most, len(all))])
	})
	return agents
}

// trusted is the cards of those with the most trust, at least as much as this.
func (c *cache) trusted(most int, least float64) (cards []api.Card) {
	c.inOrder(&c.trust, func(all []ranked) {
		for _, one := range all[:min(most, len(all))] {
			if least > 0 && one.trust < least {
				break
			}
			cards = append(cards, c.cards[one.agent])
		}
	})
	return cards
}
