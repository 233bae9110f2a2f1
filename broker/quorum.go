package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A leader that is cut off from the other servers goes on answering as leader for
// up to 20 seconds, while they have chosen another. What it says of a session
// counts only while something that this broker sent over the same connection was
// acknowledged lately, which takes two servers of three. Where nothing was, the
// broker has its own record acknowledged before it asks again.
type quorum struct {
	nc    *nats.Conn
	prove func(context.Context) error // has something acknowledged, and notes it

	mu      sync.Mutex
	over    uint64    // the connection, counted
	since   time.Time // when the first was sent of what was acknowledged with no long gap since
	last    time.Time // when the newest was sent
	proving *proof
}

// A proof is on its way, for all who wait for one.
type proof struct {
	done chan struct{}
	err  error
}

// The others wait at least 4 seconds for a heartbeat, which comes each second,
// before they choose another leader: none can have been chosen so soon after an
// acknowledgement. A leader who comes back hears of the other one with its next
// heartbeat, and may be wrong until then.
const (
	fresh      = 2500 * time.Millisecond
	steady     = 1500 * time.Millisecond
	proveAgain = 250 * time.Millisecond
	proveFor   = 3 * time.Second
)

// errNoQuorum means that nobody knows whether what the server says is the newest.
var errNoQuorum = errors.New("nothing is acknowledged: the server may be cut off from the others")

// connection is which one it is, by how often it was made again.
func (q *quorum) connection() uint64 { return q.nc.Stats().Reconnects }

// acked notes that what was sent at a time over a connection was acknowledged.
func (q *quorum) acked(at time.Time, over uint64) {
	if over != q.connection() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if over != q.over || at.Sub(q.last) > fresh {
		q.over, q.since, q.last = over, at, at
	}
	if at.After(q.last) {
		q.last = at
	}
}

// sound tells whether what a leader was asked at a time and has answered counts.
func (q *quorum) sound(asked time.Time) bool {
	over := q.connection()
	q.mu.Lock()
	defer q.mu.Unlock()
	return over == q.over && asked.Sub(q.last) <= fresh && q.last.Sub(q.since) >= steady
}

// sure returns once what is asked from then on counts.
func (q *quorum) sure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proveFor)
	defer cancel()
	for {
		if err := q.proven(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNoQuorum, err)
		}
		if q.sound(time.Now()) {
			return nil
		}
		select {
		case <-time.After(proveAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errNoQuorum, ctx.Err())
		}
	}
}

// proven waits for a proof that began after it was called, or was under way.
func (q *quorum) proven(ctx context.Context) error {
	q.mu.Lock()
	p := q.proving
	mine := p == nil
	if mine {
		p = &proof{done: make(chan struct{})}
		q.proving = p
	}
	q.mu.Unlock()
	if mine {
		p.err = q.prove(ctx)
		q.mu.Lock()
		q.proving = nil
		q.mu.Unlock()
		close(p.done)
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
