package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/approvals"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/transcript"
)

// maxCached bounds the sessions that are kept in memory. One that is not used
// costs nothing but its place here; a session that is not here is read again.
const maxCached = 4096

// sessions runs the work of each session in order, and that of different
// sessions at once. A session has a goroutine only while it has work.
type sessions struct {
	b    *Broker
	mu   sync.Mutex
	live map[performatives.SessionID]*live
	busy sync.WaitGroup
	shut bool

	next   chan *live // to a worker that waits for one
	parked int        // workers that wait
}

// maxParked bounds the workers that are kept for the next session that has
// work: their stacks have grown to what it takes.
const maxParked = 64

// live is one session that has work, or had some lately. Its work runs one
// piece after the other, so that whatever runs in it needs no lock.
type live struct {
	id      performatives.SessionID
	queue   []func(context.Context, *live) // these two are everybody's, under the lock of sessions
	running bool

	slot       *slot            // of the act that is being judged
	unresolved *cluster.Pending // an append that was not acknowledged
	attempts   int              // of settling, without success
	retrying   bool             // it will be tried again
	memory
}

// memory is what is known of a session: it can be forgotten and read again.
type memory struct {
	state    session.State
	position uint64   // of the last entry in the stream; 0 for none
	places   []uint64 // positions of all entries, by sequence number
	loaded   bool
	archived bool // it is in the archive, where nothing moves any more

	undelivered     []delivery // accepted entries that some inbox may not have yet
	inboxes         map[performatives.Agent]place
	armed           time.Time     // when the session's timer goes off
	rowState        session.Phase // in the session list
	rowParticipants int           // in the session list
	approvals       approvals.Written
}

func newSessions(b *Broker) *sessions {
	return &sessions{b: b, live: map[performatives.SessionID]*live{}, next: make(chan *live)}
}

// maxQueue bounds what waits for one session.
const maxQueue = 1024

// run enters a piece of work for a session; false means that too much waits
// already, or that the broker is closing.
func (s *sessions) run(id performatives.SessionID, do func(context.Context, *live)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[id]
	if l == nil {
		l = &live{id: id, memory: memory{state: session.New(id, s.b.Modes)}}
		s.live[id] = l
	}
	if s.shut || len(l.queue) >= maxQueue {
		return false
	}
	l.queue = append(l.queue, do)
	if !l.running {
		l.running = true
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
func (s *sessions) worker(l *live) {
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

// begin notes work that is no session's, unless the broker is closing; whoever
// began it says so when it is done.
func (s *sessions) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.busy.Add(1)
	}
	return !s.shut
}

// work runs a session's queue until it is empty.
func (s *sessions) work(l *live) {
	defer s.busy.Done()
	for {
		s.mu.Lock()
		if len(l.queue) == 0 {
			l.running, l.queue = false, nil
			if l.state.Phase == session.Idle && l.unresolved == nil {
				delete(s.live, l.id) // nobody opened it: keep nothing of it
			} else {
				s.makeRoom() // here, so that asking for what is not there takes no room from what is
			}
			s.mu.Unlock()
			return
		}
		do := l.queue[0]
		l.queue = l.queue[1:]
		s.mu.Unlock()
		do(s.b.work.Context(), l)
	}
}

// makeRoom drops a session that has nothing to do; it can be read again.
func (s *sessions) makeRoom() {
	if len(s.live) <= maxCached {
		return
	}
	for id, l := range s.live {
		if !l.running && len(l.undelivered) == 0 && l.unresolved == nil {
			delete(s.live, id)
			return
		}
	}
}

// drain stops taking work and waits for what is there.
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
func (l *live) forget(modes session.Modes) { l.memory = memory{state: session.New(l.id, modes)} }

// load reads what the transcript has, if memory has nothing of it yet.
func (b *Broker) load(ctx context.Context, l *live) error {
	if l.loaded {
		return nil
	}
	_, err := b.current(ctx, l)
	return err
}

// waits releases the slot of the act that is being judged, if there is one.
func (l *live) waits() {
	if l.slot != nil {
		l.slot.release()
	}
}

// catchUp folds the entries after the one that memory stands at.
func (b *Broker) catchUp(ctx context.Context, l *live) error {
	return b.catchUpFrom(ctx, l, b.cluster.AllApplied())
}

// catchUpFrom folds entries, and notes those after the settled position for
// delivery: another broker may have made them and not come to deliver them.
func (b *Broker) catchUpFrom(ctx context.Context, l *live, settled uint64) error {
	if b.store.SyncFailed() {
		return store.ErrSyncFailed
	}
	before, known := l.position, len(l.undelivered)
	err := b.store.Read(ctx, api.SessionsStream, api.Session(l.id), l.position+1, func(e store.Message) error {
		entry, err := transcript.Read(e.Data)
		if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
		next, err := session.Replay(l.state, entry.Message, entry.Stamp)
		if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
		l.state, l.position, l.places = next, e.Sequence, append(l.places, e.Sequence)
		l.armed, l.inboxes = time.Time{}, nil // whoever made the entry may have set the timer anew, and delivers it
		if e.Sequence > settled {
			b.cluster.Unapplied(e.Sequence)
			l.undelivered = append(l.undelivered, delivery{
				sequence: entry.Stamp.Sequence, position: e.Sequence, entry: e.Data, to: next.Audience(), again: true,
			})
		}
		return nil
	})
	if err == nil && l.position == before || errors.Is(err, cluster.ErrBroken) {
		if is, err := b.fromArchive(ctx, l); is || err != nil { // it has left, or is leaving
			return err
		}
	}
	if err != nil {
		return err
	}
	l.loaded = true
	b.resolved(l)
	if len(l.undelivered) > known { // whoever is answered from here finds it in the list
		b.list.Keep(l.id, l.row())
	}
	return nil
}

// resolved: the transcript was read after an append that was not acknowledged,
// so what it did is known.
func (b *Broker) resolved(l *live) {
	if l.unresolved != nil {
		b.cluster.Appended(l.unresolved, 0)
		l.unresolved = nil
	}
}

// current makes sure that memory is where the transcript is, before a refusal
// or a reading is based on it: another broker may have moved the session on.
func (b *Broker) current(ctx context.Context, l *live) (moved bool, err error) {
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
	if last == l.position {
		l.loaded = true
		b.resolved(l)
		return false, nil
	}
	return true, b.catchUp(ctx, l)
}

// look runs a reading of a session, up to date, and waits for it.
func (b *Broker) look(ctx context.Context, id performatives.SessionID, read func(*live)) error {
	done := make(chan error, 1)
	if !b.sessions.run(id, func(ctx context.Context, l *live) {
		_, err := b.current(ctx, l)
		if err == nil {
			read(l)
		}
		done <- err
		if len(l.undelivered) > 0 {
			b.settle(ctx, l)
		}
	}) {
		return session.Busy()
	}
	select {
	case err := <-done:
		if err != nil {
			b.Log.Error("reading a session", zap.String("session", string(id)), zap.Error(err))
			return session.Busy()
		}
		return nil
	case <-ctx.Done():
		return session.Busy()
	}
}
