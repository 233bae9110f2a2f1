package registry

import (
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Changes reach the cache from the broker's own writes and from the watch. Whatever
// their order, it ends with the newest.
func TestCacheKeepsNewest(t *testing.T) {
	t.Parallel()
	const alice = performatives.Agent("human://acme.com/alice")
	var (
		first   = api.Card{Agent: alice, Key: "first", Registry: api.Registry{MayDecide: true, Devices: []api.Device{{Key: "browser"}}}}
		second  = api.Card{Agent: alice, Key: "second"}
		put     = func(c api.Card, at uint64) func(*cache) { return func(m *cache) { m.put(c, at) } }
		removed = func(at uint64) func(*cache) { return func(m *cache) { m.remove(alice, at) } }
	)
	for _, test := range []struct {
		name    string
		changes []func(*cache)
		want    performatives.Key // "" is no card
	}{
		{"a card", []func(*cache){put(first, 1)}, "first"},
		{"two cards", []func(*cache){put(first, 1), put(second, 2)}, "second"},
		{"the older card last", []func(*cache){put(second, 2), put(first, 1)}, "second"},
		{"the same twice", []func(*cache){put(first, 1), put(first, 1)}, "first"},
		{"removed", []func(*cache){put(first, 1), removed(2)}, ""},
		{"removed at the revision that was read", []func(*cache){put(first, 1), removed(1)}, ""},
		{"removed at that revision, and the card comes late", []func(*cache){put(first, 1), removed(1), put(first, 1)}, ""},
		{"removed, and the card comes late", []func(*cache){put(first, 1), removed(2), put(first, 1)}, ""},
		{"removed, and registered again", []func(*cache){put(first, 1), removed(2), put(second, 3)}, "second"},
		{"registered again, and the removal comes late", []func(*cache){put(first, 1), put(second, 3), removed(2)}, "second"},
	} {
		c := newCache(func(c api.Card) bool { return c.Registry.MayDecide }, false)
		for _, change := range test.changes {
			change(c)
		}
		card, _, _ := c.card(alice)
		if card.Key != test.want {
			t.Errorf("%s: the key is %q, want %q", test.name, card.Key, test.want)
		}
		for key, is := range map[performatives.Key]bool{"first": test.want == "first", "second": test.want == "second", "browser": test.want == "first"} {
			if owner, _ := c.owner(key); (owner == alice) != is {
				t.Errorf("%s: the owner of %q is %q", test.name, key, owner)
			}
		}
		if _, logsIn := c.login("browser"); logsIn {
			t.Errorf("%s: a device logs in", test.name)
		}
		if got := len(c.decidersOf("acme.com")) == 1; got != (test.want == "first") {
			t.Errorf("%s: alice decides: %t", test.name, got)
		}
	}
}
