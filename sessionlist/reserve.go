package sessionlist

import (
	"sync"

	"github.com/parley-asp/parley/performatives"
)

// Reserve makes room for a session that its inviter is about to open, until release
// is called: when the list has the session, or when it was not opened after all. It
// refuses if the inviter has opened limit sessions that have not ended; open says
// how many these are.
func (l *List) Reserve(inviter performatives.Agent, limit int) (release func(), open int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open = l.open[inviter] + l.reserved[inviter]; open >= limit {
		return nil, open, false
	}
	l.reserved[inviter]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		add(l.reserved, inviter, -1)
	}), open, true
}

// Busy is how many open sessions a principal takes part in.
func (l *List) Busy(a performatives.Agent) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.busy[a]
}

// count counts the open sessions of each inviter, and of each participant.
func (l *List) count(old, now Row) {
	l.countOpen(old, -1)
	l.countOpen(now, 1)
}

func (l *List) countOpen(row Row, n int) {
	if row.State.Over() {
		return
	}
	for i, a := range row.Participants {
		if i == 0 {
			add(l.open, a, n)
		}
		add(l.busy, a, n)
	}
}

func add(counts map[performatives.Agent]int, a performatives.Agent, n int) {
	if counts[a] += n; counts[a] == 0 {
		delete(counts, a)
	}
}
