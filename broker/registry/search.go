package registry

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// AgentSearch answers agent.search.
func (r *Registry) AgentSearch(_ context.Context, c api.Caller, q api.SearchAgents) (api.Agents, error) {
	if err := checkKind(q.Kind); err != nil {
		return api.Agents{}, err
	}
	words := strings.Fields(strings.ToLower(q.Query))
	page := api.NewPage[api.Card](q.Limit)
	for card := range r.search(q.Capability, performatives.Agent(q.Cursor)) {
		if string(card.Agent) <= q.Cursor || card.Kind == performatives.KindHuman ||
			q.Organization != "" && string(card.Agent.Organisation()) != q.Organization ||
			q.Kind != "" && card.Kind != q.Kind ||
			q.Schema != "" && !slices.Contains(card.Schemas, q.Schema) ||
			q.MinTrust > 0 && (card.Registry.TrustScore == nil || *card.Registry.TrustScore < q.MinTrust) ||
			q.Verified && !vouched(card) ||
			!says(card, words) {
			continue
		}
		row := r.forCaller(card, c)
		fit.To(&row, api.MaxRowBytes)
		if !page.Add(row, fit.Size(row)) {
			return api.Agents{Agents: page.Items, Next: string(page.Items[len(page.Items)-1].Agent)}, nil
		}
	}
	return api.Agents{Agents: page.Items}, nil
}

// says reports whether a card has all the words in what people read of it.
func says(card api.Card, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := card.SearchText()
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// Capable returns the cards of agents with a capability, by URI. No human is among them.
func (r *Registry) Capable(capability string) []api.Card {
	return slices.DeleteFunc(r.cache.withCapability(capability), func(card api.Card) bool { return card.Kind == performatives.KindHuman })
}

// Trusted returns the cards of those agents that have the most trust, and at least as much
// as least, unless that is 0.
func (r *Registry) Trusted(most int, least float64) []api.Card { return r.cache.trusted(most, least) }

// Agents goes through the cards of all agents after one ("" is the beginning), by URI.
func (r *Registry) Agents(after performatives.Agent) iter.Seq[api.Card] { return r.search("", after) }

// atOnce is how many agents are looked up at once: who wants a page does not pay for all.
const atOnce = 256

// search goes through the cards with a capability, or all of agents after a cursor, by URI.
func (r *Registry) search(capability string, cursor performatives.Agent) iter.Seq[api.Card] {
	if capability != "" {
		return slices.Values(r.cache.withCapability(capability))
	}
	return func(yield func(api.Card) bool) {
		last, more := cursor, true
		for more {
			some := r.cache.after(last, atOnce)
			for _, one := range some {
				last = one.agent
				card, _, there := r.cache.card(one.agent)
				card.DomainVerified = vouched(card)
				if there && !yield(card) {
					return
				}
			}
			more = len(some) == atOnce
		}
	}
}

// Profile is what an agent's card says of its skills, read once for each card.
func (r *Registry) Profile(a performatives.Agent) (*discovery.Profile, bool) {
	return r.cache.profile(a)
}

// withCapability is the cards with a capability, sorted by URI.
func (c *cache) withCapability(wanted string) (found []api.Card) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	agents := c.capable[wanted]
	if strings.HasSuffix(wanted, ".*") {
		agents = map[performatives.Agent]bool{}
		for capability, of := range c.capable {
			if api.HasCapability([]string{capability}, wanted) {
				for a := range of {
					agents[a] = true
				}
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(agents)) {
		found = append(found, c.cards[a])
	}
	return found
}

func (c *cache) profile(a performatives.Agent) (*discovery.Profile, bool) {
	c.mu.RLock()
	card, known := c.cards[a]
	profile, read := c.profiles[a]
	revision := c.revisions[a]
	c.mu.RUnlock()
	if read || !known {
		return profile, read
	}
	profile = discovery.NewProfile(card.Skills, card.Pricing)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revisions[a] == revision {
		c.profiles[a] = profile
	}
	return profile, true
}

// checkSkills refuses skills that are too many, or a card that is too large.
func checkSkills(c *api.Card) error {
	switch size := fit.Size(c); {
	case size > api.MaxCardBytes:
		return cardFault("/card", fmt.Sprintf("a card has at most %d bytes; this one has %d", api.MaxCardBytes, size))
	case len(c.Skills) > api.MaxSkills:
		return cardFault("/card/skills", fmt.Sprintf("a card has at most %d skills; this one has %d", api.MaxSkills, len(c.Skills)))
	case len(c.Skills) > 0 && c.Kind == performatives.KindHuman:
		return cardFault("/card/skills", "skills are of an agent")
	}
	for i, capability := range c.Capabilities {
		if len(capability) > api.MaxCapability {
			return cardFault(fmt.Sprintf("/card/capabilities/%d", i), fmt.Sprintf("a capability has at most %d bytes", api.MaxCapability))
		}
	}
	for i, skill := range c.Skills {
		switch {
		case skill.ID == "" || skill.Name == "":
			return cardFault(fmt.Sprintf("/card/skills/%d", i), "a skill has an id and a name")
		case skill.Longest() > api.MaxOfSkill:
			return cardFault(fmt.Sprintf("/card/skills/%d", i), fmt.Sprintf("each list of a skill has at most %d items", api.MaxOfSkill))
		}
	}
	if kind := c.QueueDepth.Kind(); kind != 'n' && c.QueueDepth != nil {
		var depth uint32
		if json.Unmarshal(c.QueueDepth, &depth) != nil {
			return cardFault("/card/queueDepth", "queueDepth is a whole number of at least 0, or null where it is unknown")
		}
	}
	return checkPricing(c.Pricing)
}

// checkPricing refuses a price that no budget could be compared with.
func checkPricing(pricing jsontext.Value) error {
	if pricing == nil {
		return nil
	}
	amount := pricing
	if pricing.Kind() == '{' {
		var price struct {
			Amount jsontext.Value `json:"amount"`
		}
		if err := json.Unmarshal(pricing, &price); err != nil {
			return err
		}
		amount = price.Amount
	}
	text := string(amount)
	if amount.Kind() == '"' && json.Unmarshal(amount, &text) != nil || !decimal.MatchString(text) {
		return cardFault("/card/pricing", `pricing is such as {"amount": "0.05", "currency": "USD", "per": "page"}; the amount is a decimal number`)
	}
	return nil
}

// decimal is an amount that is not negative, with a currency's sign or code before or after it.
var decimal = regexp.MustCompile(`^(?:(?:[A-Z]{3}|\p{Sc}) ?)?[0-9]{1,30}(\.[0-9]{1,30})?(?: ?(?:[A-Z]{3}|\p{Sc}))?$`)
