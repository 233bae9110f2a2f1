package limits

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// A Scheduler divides a number of slots fairly among all who want to work at once:
// each principal has a queue of its own, and the queues take turns. Whoever asks for
// little waits for one piece of another's work, however much the other asks for.
type Scheduler struct {
	accounts *Accounts // are charged for the time that slots are held; nil: nobody is

	most int // that wait; 0 is no bound

	mu      sync.Mutex
	waiting int
	free    int
	queues  map[performatives.Agent]*queue
	turns   []*queue // those in which somebody waits
}

// A queue is one principal's, while somebody waits in it.
type queue struct {
	agent   performatives.Agent
	waiting []chan struct{}
}

// NewScheduler makes a scheduler of so many slots. Once most wait, who has some waiting is refused; 0 is no bound.
func NewScheduler(slots, most int) *Scheduler {
	return &Scheduler{most: most, free: slots, queues: map[performatives.Agent]*queue{}}
}

// Scheduler makes a scheduler as NewScheduler does, whose slots are charged to those who hold them.
func (s *Accounts) Scheduler(slots, most int) *Scheduler {
	made := NewScheduler(slots, most)
	made.accounts = s
	return made
}

// largeRequest is how many bytes a request has that is worked on in slots of its own: half of the cores, so
// that small requests of others never wait for all of them.
const largeRequest = 32 << 10

// LargeRead is the scheduler of what gateways do for a request of so many bytes, or nil for a small one.
func (s *Accounts) LargeRead(size int) *Scheduler {
	if s == nil || size < largeRequest {
		return nil
	}
	return s.largeRead
}

// LargeJudged is that of what the broker does. A call that has an act judged leaves its slot first.
func (s *Accounts) LargeJudged(size int) *Scheduler {
	if s == nil || size < largeRequest {
		return nil
	}
	return s.largeJudged
}

// A Slot is held by one piece of work until it is released or the work is done.
type Slot struct {
	scheduler *Scheduler
	agent     performatives.Agent
	released  bool
	begun     time.Time
}

// begin begins to count the time of a slot.
func (s *Slot) begin() *Slot {
	if s.scheduler.accounts != nil {
		s.scheduler.accounts.busy.Add(1)
		s.begun = time.Now()
	}
	s.released = false
	return s
}

// charge charges the time since begin.
func (s *Slot) charge() {
	if accounts := s.scheduler.accounts; accounts != nil {
		held := accounts.busy.Add(-1) + 1
		accounts.work(s.agent, time.Since(s.begun), held)
	}
}

// work charges a principal for work that went on while so many slots were held: for its part of
// the cores.
func (s *Accounts) work(a performatives.Agent, d time.Duration, held int32) {
	s.Of(a).Spend(CPU, d.Seconds()*min(1, s.cores/float64(held)))
}

// Enter waits for a slot.
func (s *Scheduler) Enter(a performatives.Agent) *Slot {
	wait, _ := s.Join(a)
	slot, _ := wait(context.Background()) // which does not end
	return slot
}

// Join joins the queue for a slot, unless there is no room: then wait is nil. wait waits
// for the slot until its context ends.
func (s *Scheduler) Join(a performatives.Agent) (wait func(context.Context) (*Slot, error), joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 && s.queues[a] != nil && s.most > 0 && s.waiting >= s.most {
		return nil, false
	}
	turn := s.next(a)
	return func(ctx context.Context) (*Slot, error) {
		if err := s.await(ctx, a, turn); err != nil {
			return nil, err
		}
		return (&Slot{scheduler: s, agent: a}).begin(), nil
	}, true
}

// await waits until a principal's turn has come, or leaves the queue.
func (s *Scheduler) await(ctx context.Context, a performatives.Agent, turn chan struct{}) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[a]
	if q == nil || !slices.Contains(q.waiting, turn) {
		return nil // it has come just now
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(t chan struct{}) bool { return t == turn })
	if s.waiting--; len(q.waiting) == 0 {
		delete(s.queues, a)
		s.turns = slices.DeleteFunc(s.turns, func(t *queue) bool { return t == q })
	}
	return ctx.Err()
}

// next is closed when a slot is the principal's; under mu.
func (s *Scheduler) next(a performatives.Agent) chan struct{} {
	turn := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(turn)
		return turn
	}
	q := s.queues[a]
	if q == nil {
		q = &queue{agent: a}
		s.queues[a] = q
		s.turns = append(s.turns, q)
	}
	q.waiting = append(q.waiting, turn)
	s.waiting++
	return turn
}

// Waiting is how many pieces of work wait for a slot.
func (s *Scheduler) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Release gives the slot to whose turn it is, once. Work releases it when it is done, and before it waits
// for the store, so that others can use the core.
func (s *Slot) Release() {
	if s.released {
		return
	}
	s.released = true
	s.charge()
	f := s.scheduler
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.turns) == 0 {
		f.free++
		return
	}
	q := f.turns[0]
	f.turns = f.turns[1:]
	close(q.waiting[0])
	f.waiting--
	if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
		f.turns = append(f.turns, q)
	} else {
		delete(f.queues, q.agent)
	}
}

type slotKey struct{}

// WithSlot is a context for the work that holds a slot.
func (s *Slot) WithSlot(ctx context.Context) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// Away releases the slot of the work that has this context, if it holds one, while wait waits for
// the work of others. Afterwards the principal's turn has to come again; work whose time is over
// goes on without a slot, to its end.
func Away(ctx context.Context, wait func()) {
	s, _ := ctx.Value(slotKey{}).(*Slot)
	if s == nil || s.released {
		wait()
		return
	}
	s.Release()
	wait()
	s.scheduler.mu.Lock()
	turn := s.scheduler.next(s.agent)
	s.scheduler.mu.Unlock()
	if s.scheduler.await(ctx, s.agent, turn) == nil {
		s.begin()
	}
}

// Leave releases the slot of the work that has this context, if it holds one, for good.
func Leave(ctx context.Context) {
	if s, _ := ctx.Value(slotKey{}).(*Slot); s != nil {
		s.Release()
	}
}

// Worked charges work that another goroutine did for the work of this context, while that was away.
func Worked(ctx context.Context, d time.Duration) {
	if s, _ := ctx.Value(slotKey{}).(*Slot); s != nil && s.scheduler.accounts != nil {
		s.scheduler.accounts.work(s.agent, d, s.scheduler.accounts.busy.Load()+1)
	}
}
