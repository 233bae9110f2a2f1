package broker_test

import (
	"fmt"
	"testing"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
)

// TestHome: brokers agree on where a session is at home, whatever the order in
// which they know each other; each has its part; and when one goes only its own
// sessions move.
func TestHome(t *testing.T) {
	t.Parallel()
	three, turned, two := []string{"a", "b", "c"}, []string{"c", "a", "b"}, []string{"a", "b"}
	const sessions = 3000
	count := map[string]int{}
	for n := range sessions {
		id := performatives.SessionID(fmt.Sprintf("01a1fb0f-47cf-7dfd-8e4e-%012x", n))
		at := broker.Home(id, three)
		count[at]++
		if other := broker.Home(id, turned); other != at {
			t.Fatalf("%s is at home with %s and with %s", id, at, other)
		}
		if left := broker.Home(id, two); at != "c" && left != at {
			t.Errorf("%s moved from %s to %s when c left", id, at, left)
		}
	}
	for _, b := range three {
		if n := count[b]; n < sessions/4 || n > sessions/2 {
			t.Errorf("%s has %d of %d sessions", b, n, sessions)
		}
	}
}
