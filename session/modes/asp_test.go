package modes_test

import (
	"testing"

	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// PROTOCOL.md §8: an invitation picks a mode by its name; asp/1 is the default.
// What asp/1 accepts and refuses is shown by the conversations of package session.
func TestAll(t *testing.T) {
	all := modes.All()
	for name, mode := range all {
		if mode.Name != name || mode.Min < 2 || mode.Max < mode.Min {
			t.Errorf("%q is mode %q for %d to %d principals", name, mode.Name, mode.Min, mode.Max)
		}
	}
	if all[session.DefaultMode] != modes.ASP || modes.ASP.Name != "asp/1" {
		t.Errorf("the default mode is %q", session.DefaultMode)
	}
}
