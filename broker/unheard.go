package broker

import (
	"maps"
	"sync"
	"time"
)

// unheard are homes that did not answer, though their records say that they are
// there: the link between two servers may be cut, while both reach the third. For
// a while nobody waits for them: what would be handed on is judged here, and
// doubted, since they may have heard the same act before.
type unheard struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// unheardFor is how long a home that did not answer is left alone. Then one act
// is handed on to it, to see.
const unheardFor = 10 * time.Second

// note notes that a home did not answer.
func (u *unheard) note(home string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[string]time.Time{}
	}
	maps.DeleteFunc(u.until, func(_ string, until time.Time) bool { return now.Sub(until) > unheardFor }) // of brokers that are gone
	u.until[home] = now.Add(unheardFor)
}

// heard notes that there was an answer.
func (u *unheard) heard(home string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.until, home)
}

// still tells whether a home is left alone. Whoever is told first that it is not
// any more finds out for all others.
func (u *unheard) still(home string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	until, is := u.until[home]
	if is && now.After(until) {
		u.until[home] = now.Add(unheardFor)
		return false
	}
	return is
}
