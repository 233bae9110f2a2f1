package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A queue has the open sessions of one agent in a line for each organisation that brought it
// into them. Organisations are served in turn, so that the sessions of one bury nobody else's.
// Those at the front of a line may have a turn for the agent. One that is looked at and has
// none leaves the front until it goes on: finding a turn takes no longer where many wait, or
// where many do not.
type queue struct {
	picking chan struct{} // holds one while somebody looks for a turn

	mu     sync.Mutex
	filled bool
	used   time.Time
	lines  []*line // the one to be served next first
	of     map[performatives.Organisation]*line
	all    map[performatives.SessionID]*place
}

// A line has the sessions of one organisation.
type line struct {
	of    performatives.Organisation
	front []*place // sorted by place.before
	quiet map[*place]bool
}

// A place is a session in a line.
type place struct {
	id      performatives.SessionID
	line    *line
	since   time.Time // when its turn began to wait, as far as is known, or can be taken
	changes int
	looked  bool // and it had a turn, which was:
	claim   string
	mode    string
	joined  bool
}

func (p *place) before(q *place) int {
	return cmp.Or(p.since.Compare(q.since), strings.Compare(string(p.id), string(q.id)))
}

// An OpenSession is one that is not over.
type OpenSession struct {
	ID           performatives.SessionID
	Participants []performatives.Agent // the inviter first
}

// broughtBy is the organisation that brought an agent into a session: the inviter's, or, if
// that is its own, the first other one.
func broughtBy(a performatives.Agent, participants []performatives.Agent) performatives.Organisation {
	own := a.Organisation()
	for _, p := range participants {
		if org := p.Organisation(); org != own {
			return org
		}
	}
	return own
}

// unused is after how long without use a queue is dropped. It is made again when it is used.
const unused = time.Hour

// queueOf is the queue of an agent, with its open sessions.
func (t *Turns) queueOf(ctx context.Context, a performatives.Agent) (*queue, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	now := t.o.Now()
	t.queueing.Lock()
	q, known := t.queues[a]
	if !known {
		for other, q := range t.queues {
			if now.Sub(q.lastUse()) > unused {
				delete(t.queues, other)
			}
		}
		q = &queue{picking: make(chan struct{}, 1), used: now, of: map[performatives.Organisation]*line{}, all: map[performatives.SessionID]*place{}}
		t.queues[a] = q // from now on it is told of what goes on
	}
	t.queueing.Unlock()
	select {
	case q.picking <- struct{}{}:
	case <-ctx.Done():
		return nil, session.Busy()
	}
	t.fill(a, q, now)
	return q, nil
}

// fill enters the open sessions of an agent, once.
func (t *Turns) fill(a performatives.Agent, q *queue, now time.Time) {
	q.mu.Lock()
	filled := q.filled
	q.used = now
	q.mu.Unlock()
	if filled {
		return
	}
	open := t.o.OpenSessions(a) // without the lock: the list tells the queue of what goes on meanwhile
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range open {
		if q.all[s.ID] == nil {
			q.add(s.ID, broughtBy(a, s.Participants), earlier(madeAt(s.ID), now))
		}
	}
	slices.SortStableFunc(q.lines, func(a, b *line) int { return a.front[0].before(b.front[0]) })
	q.filled = true
}

// madeAt is when an id was made, if its maker is to be believed.
func madeAt(id performatives.SessionID) time.Time {
	made, err := uuid.Parse(string(id))
	if err != nil {
		return time.Time{}
	}
	return time.Unix(made.Time().UnixTime())
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (q *queue) leave() { <-q.picking }

func (q *queue) lastUse() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Moved notes that a session went on, or is over: a turn may wait for one of its participants
// now.
func (t *Turns) Moved(id performatives.SessionID, participants []performatives.Agent, over bool) {
	t.queueing.RLock()
	defer t.queueing.RUnlock()
	if len(t.queues) == 0 {
		return
	}
	for _, a := range participants {
		if q := t.queues[a]; q != nil {
			q.moved(id, broughtBy(a, participants), over, t.o.Now())
		}
	}
}

func (q *queue) moved(id performatives.SessionID, by performatives.Organisation, over bool, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.all[id]
	switch {
	case p == nil && over:
	case p == nil:
		q.add(id, by, now)
	case over:
		q.remove(p)
	default:
		p.changes++
		p.looked = false
		if p.line.quiet[p] || p.since.After(now) {
			q.put(p, now)
		}
	}
}

func (q *queue) add(id performatives.SessionID, by performatives.Organisation, since time.Time) {
	l := q.of[by]
	if l == nil {
		l = &line{of: by, quiet: map[*place]bool{}}
		q.of[by] = l
		q.lines = append(q.lines, l)
	}
	p := &place{id: id, line: l}
	q.all[id] = p
	q.put(p, since)
}

// put gives a session its place in the front of its line.
func (q *queue) put(p *place, since time.Time) {
	q.take(p)
	p.since = since
	at, _ := slices.BinarySearchFunc(p.line.front, p, (*place).before)
	p.line.front = slices.Insert(p.line.front, at, p)
}

// take takes a session out of its line, wherever it is in it.
func (q *queue) take(p *place) {
	delete(p.line.quiet, p)
	if at, in := slices.BinarySearchFunc(p.line.front, p, (*place).before); in {
		p.line.front = slices.Delete(p.line.front, at, at+1)
	}
}

func (q *queue) remove(p *place) {
	q.take(p)
	delete(q.all, p.id)
	if l := p.line; len(l.front)+len(l.quiet) == 0 {
		delete(q.of, l.of)
		q.lines = slices.DeleteFunc(q.lines, func(other *line) bool { return other == l })
	}
}

// silence has a session leave the front until it goes on.
func (q *queue) silence(p *place) {
	q.take(p)
	p.line.quiet[p] = true
}

// wake has every session at the front again.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines {
		for p := range l.quiet {
			q.put(p, p.since)
		}
	}
}

// served has the other organisations served before this one's next turn.
func (q *queue) served(id performatives.SessionID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.all[id]; p != nil {
		at := slices.Index(q.lines, p.line)
		q.lines = append(slices.Delete(q.lines, at, at+1), p.line)
	}
}

// A search looks for the turn that is served next.
type search struct {
	*queue
	agent performatives.Agent
	wants func(mode string, joined bool) bool
	free  func(claim string) bool
	tried map[*place]bool
}

// maxReorder is how many turns of one organisation are looked at to find the oldest of them,
// where their places are not exact.
const maxReorder = 8

// next finds the turn that is served next. The queue is the caller's meanwhile.
func (t *Turns) next(ctx context.Context, s *search) (w waiting, ok bool, err error) {
	for range 2 {
		s.mu.Lock()
		lines := slices.Clone(s.lines)
		s.mu.Unlock()
		for _, l := range lines {
			found, ok, lineErr := t.oldest(ctx, s, l)
			if ok {
				return found, true, nil
			}
			err = cmp.Or(err, lineErr)
		}
		if t.o.Alone {
			break
		}
		if heardErr := t.hear(ctx); heardErr != nil {
			return w, false, cmp.Or(err, heardErr)
		}
	}
	return w, false, err
}

// oldest finds the turn of a line that waits longest.
func (t *Turns) oldest(ctx context.Context, s *search, l *line) (best waiting, ok bool, err error) {
	for found := 0; found < maxReorder; {
		p, changes := s.first(l, t.o.Now())
		if p == nil || ok && !p.since.Before(best.since()) {
			break
		}
		s.tried[p] = true
		w, waits, lookErr := t.lookAt(ctx, s.queue, s.agent, p, changes)
		if lookErr != nil {
			if ctx.Err() != nil {
				return best, ok, lookErr
			}
			err = cmp.Or(err, lookErr) // what one session is busy with is not to hide the others
			continue
		}
		if !waits || !s.wants(w.state.Mode.Name, w.joined) || !s.free(w.id) {
			continue
		}
		if found++; !ok || w.since().Before(best.since()) {
			best, ok = w, true
		}
	}
	return best, ok, err
}

// first is the first session of a line that was not tried and may have the turn.
func (s *search) first(l *line, now time.Time) (p *place, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range l.front {
		switch {
		case p.since.After(now):
			return nil, 0
		case s.tried[p] || p.looked && (!s.wants(p.mode, p.joined) || !s.free(p.claim)):
		default:
			return p, p.changes
		}
	}
	return nil, 0
}

// lookAt looks at a session, and gives it its place.
func (t *Turns) lookAt(ctx context.Context, q *queue, a performatives.Agent, p *place, changes int) (w waiting, waits bool, err error) {
	w, waits, err = t.turnIn(ctx, a, p.id)
	q.mu.Lock()
	defer q.mu.Unlock()
	gone := errors.Is(err, &session.Refusal{Code: session.UnknownSession}) // it is over, or the agent has no part in it any more
	if gone {
		err = nil
	}
	switch {
	case err != nil || p.changes != changes || q.all[p.id] != p:
	case gone || w.state.Phase.Over():
		q.remove(p)
	case waits:
		q.put(p, earlier(w.since(), w.at))
		p.looked, p.claim, p.mode, p.joined = true, w.id, w.state.Mode.Name, w.joined
	default:
		if due, later := w.state.StandsInAt(a, w.at); later {
			q.put(p, due)
		} else {
			q.silence(p)
		}
	}
	return w, waits, err
}
