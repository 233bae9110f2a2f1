package broker

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/approvals"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/scheduler"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/transcript"
)

// sessions is the session cache. It runs the work of each session in order, and
// different sessions at once. A session has a goroutine only while it has work.
type sessions struct {
	b      *Broker
	mu     sync.Mutex
	cached map[performatives.SessionID]*cachedSession
	idle   list.List // those that can be evicted, the one that worked longest ago first
	bytes  int       // of those that are cached, about
	most   int       // of bytes
	busy   sync.WaitGroup
	shut   bool

	next   chan *cachedSession // to a worker that waits for one
	parked int                 // workers that wait
}

// maxParked bounds the workers that wait for a session with work: their stacks have
// grown already.
const maxParked = 64

// A cachedSession has work, or had some lately. Its work runs one piece after the other,
// so it needs no lock.
type cachedSession struct {
	id      performatives.SessionID
	queue   []func(context.Context, *cachedSession) // this and running are guarded by sessions.mu
	running bool
	size    int           // that sessions.bytes has of it
	idle    *list.Element // nil while it cannot be evicted

	slot          *scheduler.Slot  // of the act that is being judged
	indeterminate *cluster.Pending // an append that was not acknowledged
	attempts      int              // at the side effects, without success
	retrying      bool             // of the side effects, is scheduled
	contents
}

// contents are what is cached of a session; they can be forgotten and read again.
type contents struct {
	state     session.State
	last      uint64   // stream sequence of the last entry in the stream; 0 for none
	sequences []uint64 // stream sequences of all entries, by sequenceNumber
	bytes     int      // of all entries
	loaded    bool
	archived  bool // it is in the archive and does not change any more

	unapplied       []delivery // accepted entries whose side effects may be missing
	inboxes         map[performatives.Agent]place
	armed           time.Time     // when the session's timer fires
	lagsUntil       time.Time     // the timer and the row are written then; zero if they are written
	unwritten       bool          // nobody has written a timer or a row yet, for certain
	rowState        session.Phase // in the session list
	rowParticipants int           // in the session list
	approvals       approvals.Written
	told            int  // delegations whose targets were told
	leaves          int  // agreements whose leaves are in the log
	ended           bool // the leaf of its end is in the log
}

func newSessions(b *Broker) *sessions {
	return &sessions{b: b, cached: map[performatives.SessionID]*cachedSession{}, most: maxCachedBytes, next: make(chan *cachedSession)}
}

// maxQueue bounds what waits for one session.
const maxQueue = 1024

// run queues a piece of work for a session; false means that the queue is full, or the
// broker is closing.
func (s *sessions) run(id performatives.SessionID, do func(context.Context, *cachedSession)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.cached[id]
	if l == nil {
		l = &cachedSession{id: id, contents: contents{state: session.New(id, s.b.Modes)}}
		s.cached[id] = l
	}
	if s.shut || len(l.queue) >= maxQueue {
		return false
	}
	l.queue = append(l.queue, do)
	if !l.running {
		l.running = true
		s.busied(l)
		s.busy.Add(1)
		select {
		case s.next <- l:
		default:
			go s.worker(l)
		}
	}
	return true
}

// worker does the work of one session after the other.
func (s *sessions) worker(l *cachedSession) {
	for {
		s.work(l)
		s.mu.Lock()
		full := s.parked >= maxParked
		if !full {
			s.parked++
		}
		s.mu.Unlock()
		if full {
			return
		}
		select {
		case l = <-s.next:
		case <-s.b.work.Context().Done():
			return
		}
		s.mu.Lock()
		s.parked--
		s.mu.Unlock()
	}
}

// begin counts work outside sessions, unless the broker is closing; busy.Done ends it.
func (s *sessions) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.busy.Add(1)
	}
	return !s.shut
}

// work runs a session's queue until it is empty.
func (s *sessions) work(l *cachedSession) {
	defer s.busy.Done()
	for {
		s.mu.Lock()
		if len(l.queue) == 0 {
			l.running, l.queue = false, nil
			s.idled(l)
			s.mu.Unlock()
			return
		}
		do := l.queue[0]
		l.queue = l.queue[1:]
		s.mu.Unlock()
		do(s.b.work.Context(), l)
	}
}

// working is how many cached sessions have something to do.
func (s *sessions) working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.cached) - s.idle.Len()
}

// ids are those of the cached sessions.
func (s *sessions) ids() []performatives.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.cached))
}

// drain takes no more work and waits for what is queued.
func (s *sessions) drain(ctx context.Context) {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// forget makes the next piece of work read the session anew.
func (l *cachedSession) forget(modes session.Modes) {
	l.contents = contents{state: session.New(l.id, modes)}
}

// load reads the transcript, if nothing of the session is cached.
func (b *Broker) load(ctx context.Context, l *cachedSession) error {
	if l.loaded {
		return nil
	}
	_, err := b.current(ctx, l)
	return err
}

// waits releases the slot of the act that is being judged, if there is one.
func (l *cachedSession) waits() {
	if l.slot != nil {
		l.slot.Release()
	}
}

// catchUp folds the entries after the last cached one.
func (b *Broker) catchUp(ctx context.Context, l *cachedSession) error {
	return b.catchUpFrom(ctx, l, b.cluster.AllApplied())
}

// catchUpFrom folds entries. The side effects of those after the applied sequence may be
// missing: another broker appended them and may not have applied them.
func (b *Broker) catchUpFrom(ctx context.Context, l *cachedSession, settled uint64) error {
	if b.store.SyncFailed() {
		return store.ErrSyncFailed
	}
	before, known := l.last, len(l.unapplied)
	err := b.store.Read(ctx, api.SessionsStream, api.Session(l.id), l.last+1, func(e store.Message) error {
		entry, err := transcript.Read(e.Data)
		if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
		next, err := session.Replay(l.state, entry.Message, entry.Stamp)
		if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
		l.state, l.last, l.sequences = next, e.Sequence, append(l.sequences, e.Sequence)
		l.bytes += len(e.Data)
		l.armed, l.inboxes, l.unwritten = time.Time{}, nil, false // the broker that appended the entry may have set the timer, and delivers it
		if e.Sequence > settled {
			b.cluster.Unapplied(e.Sequence)
			l.unapplied = append(l.unapplied, delivery{
				sequence: entry.Stamp.Sequence, position: e.Sequence, entry: e.Data, to: next.Audience(), again: true,
			})
		}
		return nil
	})
	if err == nil && l.last == before || errors.Is(err, cluster.ErrBroken) {
		if is, err := b.fromArchive(ctx, l); is || err != nil { // it is in the archive, or on its way there
			return err
		}
	}
	if err != nil {
		return err
	}
	l.loaded, l.state = true, l.state.CompactAll(longOffer)
	b.resolved(l)
	if len(l.unapplied) > known { // whoever is answered from here must find it in the list
		b.list.Keep(l.id, l.row())
	}
	return nil
}

// resolved ends an indeterminate append: the transcript was read after it, so its outcome
// is known.
func (b *Broker) resolved(l *cachedSession) {
	if l.indeterminate != nil {
		b.cluster.Appended(l.indeterminate, 0)
		l.indeterminate = nil
	}
}

// current catches up with the transcript before a refusal or a reading is based on the
// cached session: another broker may have moved it on.
func (b *Broker) current(ctx context.Context, l *cachedSession) (moved bool, err error) {
	if b.store.SyncFailed() {
		return false, store.ErrSyncFailed
	}
	l.waits()
	if l.archived {
		return false, nil
	}
	last, err := b.store.LastEntry(ctx, l.id)
	if err != nil {
		return false, err
	}
	if last == 0 && !l.loaded {
		if is, err := b.fromArchive(ctx, l); is || err != nil {
			return is, err
		}
	}
	if last == l.last {
		l.loaded = true
		b.resolved(l)
		return false, nil
	}
	return true, b.catchUp(ctx, l)
}

// view reads a session that is up to date, in its turn, and waits for that. Once it
// has returned, read does not run any more: it writes what the caller owns.
func (b *Broker) view(ctx context.Context, id performatives.SessionID, read func(*cachedSession)) error {
	done := make(chan error, 1)
	var mu sync.Mutex
	gone := false // nobody waits any more; under mu
	if !b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		_, err := b.current(ctx, l)
		mu.Lock()
		if err == nil && !gone {
			read(l)
		}
		mu.Unlock()
		done <- err
		if len(l.unapplied) > 0 {
			b.applySideEffects(ctx, l)
		}
	}) {
		return session.Busy()
	}
	select {
	case err := <-done:
		if err != nil {
			b.Log.Error("session not read", zap.String("session", string(id)), zap.Error(err))
			return session.Busy()
		}
		return nil
	case <-ctx.Done():
		mu.Lock()
		gone = true
		mu.Unlock()
		return session.Busy()
	}
}
