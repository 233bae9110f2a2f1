package gateway

import (
	"context"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
)

// Turns are taken by those for whom a gateway does some work itself: so many at once, each principal
// in its turn, and charged while it has one.
type Turns struct{ of *limits.Scheduler }

// mostWaiting are those who wait for a turn. Beyond them, who waits already is refused another.
const mostWaiting = 64

// Turns makes turns of which so many are taken at once.
func (s *Service) Turns(atOnce int) Turns { return Turns{s.Accounts.Scheduler(atOnce, mostWaiting)} }

// Take waits for a principal's turn, until leave; false if it has not come before the context ends.
func (t Turns) Take(ctx context.Context, a performatives.Agent) (leave func(), came bool) {
	wait, joined := t.of.Join(a)
	if !joined {
		return nil, false
	}
	slot, err := wait(ctx)
	if err != nil {
		return nil, false
	}
	return slot.Release, true
}
