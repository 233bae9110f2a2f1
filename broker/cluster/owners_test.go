package cluster_test

import (
	"fmt"
	"testing"

	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/performatives"
)

// Brokers agree on the owner of a session, in whatever order they know each other;
// each owns its part; and when one goes only its own sessions move.
func TestOwners(t *testing.T) {
	t.Parallel()
	three, turned, two := cluster.OwnersAmong([]string{"a", "b", "c"}), cluster.OwnersAmong([]string{"c", "a", "b"}), cluster.OwnersAmong([]string{"a", "b"})
	const sessions = 3000
	count := map[string]int{}
	for n := range sessions {
		id := performatives.SessionID(fmt.Sprintf("01a1fb0f-47cf-7dfd-8e4e-%012x", n))
		owner := three.Of(id)
		count[owner]++
		if other := turned.Of(id); other != owner {
			t.Fatalf("%s is owned by %s and by %s", id, owner, other)
		}
		if left := two.Of(id); owner != "c" && left != owner {
			t.Errorf("%s moved from %s to %s when c left", id, owner, left)
		}
	}
	for _, b := range []string{"a", "b", "c"} {
		if n := count[b]; n < sessions/4 || n > sessions/2 {
			t.Errorf("%s owns %d of %d sessions", b, n, sessions)
		}
	}
}
