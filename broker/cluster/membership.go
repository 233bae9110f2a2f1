// Package cluster knows which brokers are alive, how far each has come, and which
// of them owns which sessions.
//
//	members, err := cluster.Open(ctx, cluster.Options{Store: s, ID: id, Recover: engine.Recover})
//	if err != nil { … }
//	defer members.Close()
//	pending := members.Appending(session)
//	position, err := … append …
//	members.Appended(pending, position) // until Applied(position) the entry is unfinished work
//
// Each broker writes a membership record about once a second: the position in each shard
// of the transcripts up to which the side effects of everything it accepted are
// applied. When a broker sends no heartbeat for 3 seconds, the others recover what
// came after that. All writes of a recovery are conditional, so meeting the
// work of a broker that is alive after all does no harm.
package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

const (
	heartbeat = time.Second

	warnEvery = 10 * time.Second // of heartbeats that fail

	// SuspectAfter is how long a broker may send no heartbeat before it is suspected.
	SuspectAfter = 3 * time.Second
)

// ErrBroken means that a transcript cannot be read as what a broker wrote. That
// session goes no further, and no other suffers from it.
var ErrBroken = errors.New("the transcript does not replay")

// Options say how a broker takes part.
type Options struct {
	Store       *store.Store
	ID          string        // of this broker among its peers
	Alone       bool          // no other broker can be running: the work of the last one is recovered at once
	SyncedAfter time.Duration // the server has on disk what it acknowledged so long ago
	Log         *zap.Logger
	Now         func() time.Time

	// Recover applies the side effects of a session's entries after a position. The
	// channel gets one error, ErrBroken where it is no use to try again.
	Recover func(id performatives.SessionID, after uint64) <-chan error

	// Suspect, if there is one, is told of a suspected peer, before its work is recovered.
	Suspect func(id string)

	// Reconnect, if there is one, connects to another server, if one is known.
	Reconnect func()

	// Recovered, if there is one, is told how each recovery ended.
	Recovered func(error)
}

// Membership is this broker among its peers.
type Membership struct {
	o      Options
	bucket *store.Bucket
	owners atomic.Pointer[Owners]
	moved  atomic.Pointer[func()]
	work   *background.Group

	mu         sync.Mutex
	last       store.Marks                           // the newest entries of all sessions that were seen
	appending  map[*Pending]bool                     // appends whose outcome is not known yet
	unapplied  map[uint64]bool                       // positions of entries whose side effects are not applied yet
	allApplied store.Marks                           // applied by every broker, when the records were last read
	recovering map[string]bool                       // peers whose work is being recovered
	members    []string                              // brokers that are alive
	handedOver map[performatives.SessionID]uint64    // whose side effects peers are asked to apply, after a position
	handOvers  uint64                                // so far
	helped     map[performatives.SessionID]time.Time // handed over by peers, when this broker applied them
	acked      time.Time                             // when the record was sent that was acknowledged last
	rejoined   time.Time                             // until then this broker counts as isolated

	reconnected time.Time // when another server was tried last

	looking sync.Mutex // at the peers, one at a time
	writing sync.Mutex // of the record
	written record

	first   store.Marks // what the brokers before this one had applied, on disk
	samples []sample    // of what was applied since then
}

// A Pending is an append on its way: its entry will come after this position of its shard.
type Pending struct {
	shard int
	after uint64
}

// Open joins the cluster. A broker that is alone recovers what the last one left
// unfinished before Open returns.
func Open(ctx context.Context, o Options) (*Membership, error) {
	bucket, err := o.Store.Bucket(ctx, api.BrokersBucket, "brokers and how far each has applied its work", 0)
	if err != nil {
		return nil, err
	}
	last, err := o.Store.Ends(ctx, api.SessionsStream)
	if err != nil {
		return nil, err
	}
	m := &Membership{
		o: o, bucket: bucket, work: background.New(), last: last, allApplied: make(store.Marks, len(last)),
		unapplied: map[uint64]bool{}, appending: map[*Pending]bool{}, recovering: map[string]bool{},
		handedOver: map[performatives.SessionID]uint64{}, helped: map[performatives.SessionID]time.Time{},
	}
	m.owners.Store(OwnersAmong([]string{o.ID}))
	return m, nil
}

// Join writes the record and begins to send heartbeats. It comes after Open, once
// Recover can work. What is known to be nobody's work any more is recovered when it returns.
func (m *Membership) Join(ctx context.Context) error {
	m.o.Store.RenewLeaseBy(m.rewrite)
	peers, err := m.peers(ctx)
	if err != nil {
		return err
	}
	m.first = slices.Clone(m.last)
	for _, p := range peers {
		m.first.Lower(p.record.Synced)
	}
	if err := m.write(ctx); err != nil {
		return err
	}
	if err := m.bucket.Sync(); err != nil {
		return err // a power failure must not make the next start believe that nobody was here
	}
	for _, p := range peers {
		if m.o.Alone || p.record.Restored {
			if err := m.recover(ctx, p); err != nil {
				return err
			}
		}
	}
	m.work.Go(m.beat)
	return nil
}

// Close ends the heartbeats. The record stays: Leave takes it away.
func (m *Membership) Close() { m.work.Close() }

// Leave takes this broker's record away, if its work is finished. Otherwise a peer
// recovers the rest.
func (m *Membership) Leave(ctx context.Context) {
	m.mu.Lock()
	finished := len(m.unapplied) == 0 && len(m.appending) == 0
	joined := !m.acked.IsZero()
	m.mu.Unlock()
	if !finished || !joined {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := m.bucket.Delete(ctx, m.o.ID); err != nil {
		m.o.Log.Warn("membership record", zap.Error(err))
	}
}

// Appending notes an append before it is made.
func (m *Membership) Appending(id performatives.SessionID) *Pending {
	shard := m.o.Store.Shard(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &Pending{shard, m.last[shard]}
	m.appending[p] = true
	return p
}

// Appended notes how an append ended: the position of its entry, or 0 for none.
func (m *Membership) Appended(p *Pending, position uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.appending, p)
	if position > 0 {
		m.unapplied[position] = true
		m.last[p.shard] = max(m.last[p.shard], position)
	}
}

// Unapplied notes an entry whose side effects have to be applied, whoever appended it.
func (m *Membership) Unapplied(position uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unapplied[position] = true
}

// Applied notes that the side effects of an entry are applied.
func (m *Membership) Applied(position uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unapplied, position)
}

// applied is up to where the side effects of all that was accepted here are applied.
func (m *Membership) applied() store.Marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	applied := slices.Clone(m.last)
	for p := range m.appending {
		applied[p.shard] = min(applied[p.shard], p.after)
	}
	for position := range m.unapplied {
		applied.Before(position)
	}
	return applied
}

// AllApplied is the position up to which all side effects are applied in the shard of a session, whichever
// broker accepted the entries.
func (m *Membership) AllApplied(id performatives.SessionID) uint64 {
	shard := m.o.Store.Shard(id)
	if m.o.Alone {
		return m.applied()[shard]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allApplied[shard]
}

// Written is what this broker's record has as applied.
func (m *Membership) Written() store.Marks {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.written.Applied
}

func (m *Membership) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	var warned time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.Heartbeat(ctx); err != nil && ctx.Err() == nil {
			if now := time.Now(); now.Sub(warned) >= warnEvery {
				warned = now
				m.o.Log.Warn("heartbeat", zap.Error(err))
			}
			m.reconnect()
		}
	}
}

// Heartbeat writes this broker's record, reads those of its peers, and starts the
// recovery of the dead ones.
func (m *Membership) Heartbeat(ctx context.Context) error {
	m.looking.Lock()
	defer m.looking.Unlock()
	ends, err := m.o.Store.Ends(ctx, api.SessionsStream)
	if err != nil {
		return errors.Join(err, m.rewrite(ctx)) // this broker is alive all the same
	}
	m.mu.Lock()
	m.last.Raise(ends)
	m.mu.Unlock()
	if !m.o.Alone || !slices.Equal(m.Written(), m.applied()) {
		if err := m.write(ctx); err != nil {
			return err
		}
	}
	if m.o.Alone {
		return nil
	}
	peers, err := m.peers(ctx)
	if err != nil {
		return err
	}
	for _, p := range peers {
		if m.dead(p) {
			m.startRecovery(p)
		} else {
			m.help(p)
		}
	}
	return nil
}
