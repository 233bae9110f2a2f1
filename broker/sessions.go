package broker

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// sessions is the session cache. It runs the work of each session in order, and
// different sessions at once. A session has a goroutine only while it has work.
type sessions struct {
	b      *Broker
	mu     sync.Mutex
	cached map[performatives.SessionID]*cachedSession
	idle   list.List // those that can be evicted, the one that worked longest ago first
	bytes  int       // of those that are cached, about
	queued int       // pieces of work that wait for those before them in their sessions
	most   int       // of bytes
	busy   sync.WaitGroup
	shut   bool

	atDeadlines atomic.Int64 // sessions that are worked on because their timer fired
	yields      sync.Mutex   // held by the session that pauses

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

	slot          *limits.Slot     // of the act that is being judged
	act           *telemetry.Act   // that is being judged
	indeterminate *cluster.Pending // an append that was not acknowledged
	attempts      int              // at the side effects, without success
	failing       time.Time        // since when they fail; zero if they do not
	handedOver    bool             // peers were asked to apply them
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

	unapplied []delivery // accepted entries whose side effects may be missing
	inboxes   map[performatives.Agent]place
	armed     time.Time // when the session's timer fires
	looked    time.Time // when a timer that fired had the deadlines looked at
	lagsUntil time.Time // the timer and the row are written then; zero if they are written
	unwritten bool      // nobody has written a timer or a row yet, for certain
	listed    rowMark   // of its row in the session list
	approvals approvals.Written
	stoodIn   map[performatives.Agent]uint64 // the entries with overdue turns that standbys were told of
	told      int                            // delegations whose targets were told
	noticed   map[notice]bool                // of what is due or overdue
	sought    bool                           // what is overdue was looked for since the broker entered an event
	leaves    int                            // agreements whose leaves are in the log
	ended     bool                           // the leaf of its end is in the log
}

func newSessions(b *Broker) *sessions {
	return &sessions{b: b, cached: map[performatives.SessionID]*cachedSession{}, most: maxCachedBytes, next: make(chan *cachedSession)}
}

// maxQueue bounds what waits for one session.
const maxQueue = 1024

func (s *sessions) caches(id performatives.SessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cached[id] != nil
}

// run queues a piece of work for a session; false means that the queue is full, or the
// broker is closing.
func (s *sessions) run(id performatives.SessionID, do func(context.Context, *cachedSession)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.cached[id]
	if l == nil {
		l = &cachedSession{id: id, contents: contents{state: session.New(id, s.b.o.Modes)}}
		s.cached[id] = l
	}
	if s.shut || len(l.queue) >= maxQueue {
		return false
	}
	l.queue = append(l.queue, do)
	s.queued++
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
		case <-s.b.parts.Work.Context().Done():
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
		s.queued--
		s.mu.Unlock()
		do(s.b.parts.Work.Context(), l)
	}
}

// working is how many cached sessions have something to do.
func (s *sessions) working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.cached) - s.idle.Len()
}

// othersAct reports whether sessions have work other than their deadlines, and nothing waits for this one.
func (s *sessions) othersAct(l *cachedSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(l.queue) == 0 && len(s.cached)-s.idle.Len() > int(s.atDeadlines.Load())
}

// Counts are what the command has in hand.
type Counts struct {
	Cached   int // sessions
	Queued   int // pieces of work that wait for those before them in their sessions
	Judging  int // acts that wait for a slot
	Checking int // checks of terms that wait for one
}

// Counts counts.
func (b *Broker) Counts() Counts {
	s := b.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Cached: len(s.cached), Queued: s.queued, Judging: b.judging.Waiting(), Checking: b.checking.Waiting()}
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
