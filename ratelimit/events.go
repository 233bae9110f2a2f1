package ratelimit

import (
	"maps"
	"sync"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// limitedEvery is how often monitors hear that a principal exceeds its limits: who does
// so may ask thousands of times a second.
const limitedEvery = time.Second

// Events are when monitors last heard of whom, and how often it has happened since.
type Events struct {
	mu      sync.Mutex
	told    map[performatives.Agent]event
	sweepAt int // look for old ones when there are so many
}

type event struct {
	at   time.Time
	more int
}

// Count notes a refusal and returns how many there are to tell of; 0 is none yet.
func (e *Events) Count(a performatives.Agent, now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.told[a]
	if now.Sub(last.at) < limitedEvery {
		last.more++
		e.told[a] = last
		return 0
	}
	if len(e.told) >= e.sweepAt {
		maps.DeleteFunc(e.told, func(_ performatives.Agent, of event) bool { return now.Sub(of.at) >= limitedEvery })
		e.sweepAt = max(fewBuckets, 2*len(e.told))
	}
	if e.told == nil {
		e.told = map[performatives.Agent]event{}
	}
	e.told[a] = event{at: now}
	return last.more + 1
}
