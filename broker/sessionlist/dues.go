package sessionlist

import (
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Dues are what a row has of a session's open obligations and of its disputes, so that nobody has to read the session
// to list them.
// Do not change it.
type Dues struct {
	Purpose     string                       `json:"purpose,omitzero"`
	Escalated   []performatives.Organisation `json:"escalated,omitzero"`   // organisations whose humans may decide in the session
	Obligations []api.ObligationView         `json:"obligations,omitzero"` // the one due first first, at most api.MostOpenObligations
	Disputes    []api.DisputeRow             `json:"disputes,omitzero"`    // the newest first
	Arbiter     performatives.Agent          `json:"arbiter,omitzero"`     // who takes part to decide them
	Stopped     *Stopped                     `json:"stopped,omitzero"`
}

// Stopped says that a session's clock stands still: what is due moves on with the time.
type Stopped struct {
	Since time.Time `json:"since"` // when the row was made: its times are as of then
	Until time.Time `json:"until"` // when the clock goes on at the latest
}

// A DueRow is a session with open obligations or disputes.
type DueRow struct {
	Place
	Principals []performatives.Agent
	*Dues
}

// Dues lists the sessions of a selection that have open obligations or disputes, in no order.
func (l *List) Dues(selection Selection) (found []DueRow) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	t, seen := l.table, map[uint32]bool{}
	for _, sorted := range selection(t) {
		for r := range sorted.values() {
			if t.rows[r].state.Over() || seen[r] {
				continue
			}
			dues, some := t.dues[r]
			if !some {
				continue
			}
			seen[r] = true
			row := DueRow{Place: t.rows[r].Place, Dues: dues}
			for n, a := range t.participants(r) {
				if n == int(t.rows[r].principals) {
					break
				}
				row.Principals = append(row.Principals, t.names[a])
			}
			found = append(found, row)
		}
	}
	return found
}
