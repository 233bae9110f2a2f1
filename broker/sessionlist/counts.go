package sessionlist

import (
	"math"
	"slices"
	"strings"

	"github.com/parley-asp/parley/session"
)

// Owed counts the open obligations of a session by where they stand.
type Owed struct {
	Due      int `json:"due,omitzero"`
	Asserted int `json:"asserted,omitzero"` // delivered, and not answered yet
	Overdue  int `json:"overdue,omitzero"`  // breached, and still due
	Disputed int `json:"disputed,omitzero"`
}

// A Kind of sessions is what a count of them is by. The mode is "" in rows of an older version.
type Kind struct {
	State session.Phase
	Mode  string
}

// Counts are how many sessions of each kind memory has, and what they owe.
func (l *List) Counts() (map[Kind]int, Owed) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	kinds := map[Kind]int{}
	for k, n := range l.table.counts.kinds {
		kinds[Kind{k.state, l.table.modes[k.mode]}] = n
	}
	return kinds, l.table.counts.owed
}

// counts are of the rows of a table, so that nobody has to look at all of them.
type counts struct {
	kinds map[compactKind]int
	owed  Owed
}

type compactKind struct {
	state session.Phase
	mode  uint8
}

func newCounts() counts { return counts{kinds: map[compactKind]int{}} }

// count adds a row to the counts n times.
func (t *table) count(r uint32, n int) {
	add(t.counts.kinds, compactKind{t.rows[r].state, t.rows[r].mode}, n)
	if owed, some := t.owed[r]; some {
		t.counts.owed.Due += n * owed.Due
		t.counts.owed.Asserted += n * owed.Asserted
		t.counts.owed.Overdue += n * owed.Overdue
		t.counts.owed.Disputed += n * owed.Disputed
	}
}

// modeNumber is a mode's number; a mode that is not known gets the next, as long as there are some.
func (t *table) modeNumber(mode string) uint8 {
	n := slices.Index(t.modes, mode)
	if n < 0 {
		if n = len(t.modes); n > math.MaxUint8 {
			return 0
		}
		t.modes = append(t.modes, strings.Clone(mode))
	}
	return uint8(n) //nolint:gosec // below 256
}
