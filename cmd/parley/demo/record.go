package demo

import (
	"context"
	"sync"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// A record assembles a session's transcript from what its agents receive. No agent
// receives its own acts, but together they receive every entry. An entry is shown
// in order, when the first agent has received it.
type record struct {
	show func(transcript.Entry)

	mu       sync.Mutex
	session  performatives.SessionID
	entries  []transcript.Entry             // in order, shown
	early    map[uint64]transcript.Entry    // received before an earlier entry
	received map[performatives.Agent]uint64 // how far each agent has read
	changed  chan struct{}                  // closed, and made again
}

func newRecord(id performatives.SessionID, show func(transcript.Entry)) *record {
	return &record{
		session: id, show: show,
		early: map[uint64]transcript.Entry{}, received: map[performatives.Agent]uint64{}, changed: make(chan struct{}),
	}
}

// add adds entries that an agent received. Those of other sessions are not its.
func (r *record) add(by performatives.Agent, entries ...transcript.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		if e.Message.Session != r.session {
			continue
		}
		r.received[by] = max(r.received[by], e.Stamp.Sequence+1)
		if e.Stamp.Sequence >= uint64(len(r.entries)) {
			r.early[e.Stamp.Sequence] = e
		}
	}
	for {
		next := uint64(len(r.entries))
		e, there := r.early[next]
		if !there {
			break
		}
		delete(r.early, next)
		r.entries = append(r.entries, e)
		r.show(e)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// until waits for something about what was received; holds is called with mu held.
func (r *record) until(ctx context.Context, holds func() bool) error {
	for {
		r.mu.Lock()
		held, changed := holds(), r.changed
		r.mu.Unlock()
		if held {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// newest is the last entry so far, the zero Entry if there is none.
func (r *record) newest() (e transcript.Entry) {
	r.between(func() { e = r.last() })
	return e
}

// last is newest, for who holds mu.
func (r *record) last() (e transcript.Entry) {
	if n := len(r.entries); n > 0 {
		e = r.entries[n-1]
	}
	return e
}

// over reports, to who holds mu, whether the session has ended.
func (r *record) over() bool {
	phase, _ := session.ParsePhase(r.last().Stamp.Receipt.State)
	return phase.Over()
}

// between calls do between two entries.
func (r *record) between(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// is says which session it is of, if whoever opened it gave it another id.
func (r *record) is(id performatives.SessionID) { r.between(func() { r.session = id }) }
