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

// count counts the open sessions of each inviter.
func (l *List) count(old, now Row) {
	if len(old.Participants) > 0 && !old.State.Over() {
		add(l.open, old.Participants[0], -1)
	}
	if len(now.Participants) > 0 && !now.State.Over() {
		add(l.open, now.Participants[0], 1)
	}
}

func add(counts map[performatives.Agent]int, a performatives.Agent, n int) {
	if counts[a] += n; counts[a] == 0 {
		delete(counts, a)
	}
}
