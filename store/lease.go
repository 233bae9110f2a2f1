package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/internal/background"
)

// lease is the read lease on a replicated stream. A leader that is cut off from
// the other servers goes on answering as leader for up to 20 seconds, while they
// have elected another. Its answers count only while the lease holds: something
// that this broker wrote over the same connection was acknowledged lately, which
// takes two servers of three. Where nothing was, the broker renews the lease: it
// writes its own membership record before it reads again.
type lease struct {
	nc    *nats.Conn
	work  *background.Group
	renew func(context.Context) error // writes something and reports it to acknowledged

	mu         sync.Mutex
	connection uint64    // which one, counted
	since      time.Time // when the first write was sent of those acknowledged without a long gap since
	last       time.Time // when the newest was sent
	renewing   *renewal
}

// A renewal is under way, for all who wait for one.
type renewal struct {
	done chan struct{}
	err  error
}

// A follower waits at least 4 seconds for a heartbeat, which comes each second,
// before it stands for election: no other leader can have been elected so soon
// after an acknowledgement. A deposed leader that comes back learns of the new one
// with the next heartbeat, and may be wrong until then.
const (
	leaseFor     = 2500 * time.Millisecond
	leaseWarmup  = 1500 * time.Millisecond
	renewAgain   = 250 * time.Millisecond
	renewTimeout = 3 * time.Second
)

// errNoLease means that nobody knows whether the server's answer is the newest.
var errNoLease = errors.New("nothing is acknowledged: the server may be cut off from the others")

// RenewLeaseBy sets how the read lease is renewed: write must write something and
// report it to Acknowledged. It is set once, before anything is read.
func (s *Store) RenewLeaseBy(write func(context.Context) error) { s.lease.renew = write }

// Connection tells which connection to the server this is, by how often it was made again.
func (s *Store) Connection() uint64 { return s.lease.current() }

// Acknowledged extends the read lease: what was sent at a time over a connection was acknowledged.
func (s *Store) Acknowledged(sent time.Time, connection uint64) {
	s.lease.acknowledged(sent, connection)
}

func (l *lease) current() uint64 { return l.nc.Stats().Reconnects }

func (l *lease) acknowledged(sent time.Time, connection uint64) {
	if connection != l.current() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if connection != l.connection || sent.Sub(l.last) > leaseFor {
		l.connection, l.since, l.last = connection, sent, sent
	}
	if sent.After(l.last) {
		l.last = sent
	}
}

// holds reports whether a leader's answer to a question that was asked at a time counts.
func (l *lease) holds(asked time.Time) bool {
	connection := l.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	return connection == l.connection && asked.Sub(l.last) <= leaseFor && l.last.Sub(l.since) >= leaseWarmup
}

// ensure returns once the lease holds for what is asked from then on.
func (l *lease) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	for {
		if err := l.renewed(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNoLease, err)
		}
		if l.holds(time.Now()) {
			return nil
		}
		if err := background.Pause(ctx, renewAgain); err != nil {
			return fmt.Errorf("%w: %w", errNoLease, err)
		}
	}
}

// renewed waits for a renewal that begins now, or is under way. The renewal
// belongs to all who wait: it has a deadline of its own and not that of one of them.
func (l *lease) renewed(ctx context.Context) error {
	l.mu.Lock()
	r := l.renewing
	if r == nil {
		r = &renewal{done: make(chan struct{})}
		l.renewing = r
		if !l.work.Go(func(ctx context.Context) { l.run(ctx, r) }) {
			r.err = context.Canceled
			close(r.done)
		}
	}
	l.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lease) run(ctx context.Context, r *renewal) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	r.err = l.renew(ctx)
	l.mu.Lock()
	l.renewing = nil
	l.mu.Unlock()
	close(r.done)
}
