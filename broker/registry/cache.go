package registry

import (
	"slices"
	"sync"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// A cache holds every card in memory. Cards come from the broker's own writes and
// from the watch, which overtake each other; an older revision changes nothing.
type cache struct {
	decides func(api.Card) bool

	mu        sync.RWMutex
	cards     map[performatives.Agent]api.Card
	revisions map[performatives.Agent]uint64 // of the last change that was applied, also of a removal
	shared    bool                           // a key that signs logs in where there is no login key
	keys      map[performatives.Key]owned
	deciders  map[performatives.Organisation]map[performatives.Agent]bool
	dids      map[string]performatives.Agent
	capable   map[string]map[performatives.Agent]bool // by capability
	profiles  map[performatives.Agent]*discovery.Profile
	uris      order
	trust     order
	senders   map[string]performatives.Agent // by name in MACP
}

// role is what a key is for; it is for nothing else.
type role string

const (
	signs    role = "signs"
	logsIn   role = "logs in"
	asDevice role = "signs as a device"
)

// owned says whose key it is, and what for.
type owned struct {
	agent performatives.Agent
	role  role
}

func newCache(decides func(api.Card) bool, shared bool) *cache {
	return &cache{
		decides: decides, cards: map[performatives.Agent]api.Card{}, revisions: map[performatives.Agent]uint64{},
		shared: shared, keys: map[performatives.Key]owned{},
		deciders: map[performatives.Organisation]map[performatives.Agent]bool{},
		dids:     map[string]performatives.Agent{},
		capable:  map[string]map[performatives.Agent]bool{}, profiles: map[performatives.Agent]*discovery.Profile{},
		uris: order{compare: byURI}, trust: order{compare: byTrust},
		senders: map[string]performatives.Agent{},
	}
}

// put holds a card that has a revision, and returns the one that it replaces.
func (c *cache) put(card api.Card, revision uint64) (old api.Card, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision <= c.revisions[card.Agent] {
		return api.Card{}, false
	}
	c.revisions[card.Agent] = revision
	old = c.forget(card.Agent)
	c.cards[card.Agent] = card
	c.uris.add(card)
	c.trust.add(card)
	for k, is := range keysOf(card) {
		c.keys[k] = owned{card.Agent, is}
	}
	if _, taken := c.senders[card.MACPSender]; card.MACPSender != "" && !taken {
		c.senders[card.MACPSender] = card.Agent
	}
	if did := card.Registry.DID; did != "" {
		c.dids[did] = card.Agent
	}
	for _, capability := range card.Capabilities {
		if c.capable[capability] == nil {
			c.capable[capability] = map[performatives.Agent]bool{}
		}
		c.capable[capability][card.Agent] = true
	}
	if c.decides(card) {
		org := card.Agent.Organisation()
		if c.deciders[org] == nil {
			c.deciders[org] = map[performatives.Agent]bool{}
		}
		c.deciders[org][card.Agent] = true
	}
	return old, true
}

// remove forgets a card that has at most this revision, and returns it.
func (c *cache) remove(a performatives.Agent, revision uint64) (old api.Card, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision < c.revisions[a] {
		return api.Card{}, false
	}
	c.revisions[a] = revision
	return c.forget(a), true
}

func (c *cache) forget(a performatives.Agent) (old api.Card) {
	old = c.cards[a]
	delete(c.cards, a)
	c.uris.remove(old)
	c.trust.remove(old)
	for k := range keysOf(old) {
		delete(c.keys, k)
	}
	if c.dids[old.Registry.DID] == a {
		delete(c.dids, old.Registry.DID)
	}
	if c.senders[old.MACPSender] == a {
		delete(c.senders, old.MACPSender)
	}
	delete(c.deciders[a.Organisation()], a)
	delete(c.profiles, a)
	for _, capability := range old.Capabilities {
		delete(c.capable[capability], a)
		if len(c.capable[capability]) == 0 {
			delete(c.capable, capability)
		}
	}
	return old
}

// card finds a principal's card, and the revision of the last change to it.
func (c *cache) card(a performatives.Agent) (card api.Card, revision uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	card, ok = c.cards[a]
	return card, c.revisions[a], ok
}

func (c *cache) sender(name string) (performatives.Agent, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, ok := c.senders[name]
	return a, ok
}

// login finds whose login key it is.
func (c *cache) login(k performatives.Key) (performatives.Agent, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	owner := c.keys[k]
	card := c.cards[owner.agent]
	may := owner.role == logsIn || c.shared && k == card.Key && len(card.LoginKeys) == 0
	return owner.agent, may
}

// named finds who has registered a DID.
func (c *cache) named(did string) (performatives.Agent, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, ok := c.dids[did]
	return a, ok
}

// owner finds whose key it is, and what for.
func (c *cache) owner(k performatives.Key) (performatives.Agent, role) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.keys[k].agent, c.keys[k].role
}

// keysOf are the keys of a card.
func keysOf(card api.Card) map[performatives.Key]role {
	keys := map[performatives.Key]role{}
	for _, k := range card.Registry.FormerKeys {
		keys[k] = signs
	}
	for _, d := range card.Registry.Devices {
		keys[d.Key] = asDevice
	}
	for _, k := range card.LoginKeys {
		keys[k] = logsIn
	}
	if card.Key != "" {
		keys[card.Key] = signs
	}
	return keys
}

// decidersOf are the cards of the humans who may decide for an organisation.
func (c *cache) decidersOf(org performatives.Organisation) []api.Card {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cards := make([]api.Card, 0, len(c.deciders[org]))
	for a := range c.deciders[org] {
		cards = append(cards, c.cards[a])
	}
	return cards
}

// list is the cards that are wanted, sorted by URI.
func (c *cache) list(wanted func(api.Card) bool) []api.Card {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var agents []performatives.Agent
	for a, card := range c.cards {
		if wanted(card) {
			agents = append(agents, a)
		}
	}
	slices.Sort(agents)
	found := make([]api.Card, len(agents))
	for n, a := range agents {
		found[n] = c.cards[a]
	}
	return found
}
