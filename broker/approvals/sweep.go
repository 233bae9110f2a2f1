package approvals

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Kept says which sessions are kept.
type Kept struct {
	MayBeGone func(performatives.SessionID) bool // as far as memory tells
	Gone      func(context.Context, performatives.SessionID) (bool, error)
}

// mostSwept bounds the sessions of one sweep.
const mostSwept = 10_000

// leftovers are what is in the store of a session that may be gone.
type leftovers struct {
	items   map[string]string // subjects of approvals, and of their case logs
	notices []uint64          // to people
}

// Sweep takes out of the store and of memory what is left of sessions that are gone. It returns those that are not gone
// yet, and whether there were more than it looks at.
func (a *Approvals) Sweep(ctx context.Context, kept Kept) (waiting []performatives.SessionID, more bool, err error) {
	found, more, err := a.leftovers(ctx, kept.MayBeGone)
	if err != nil {
		return nil, more, err
	}
	for id, left := range found {
		gone, err := kept.Gone(ctx, id)
		switch {
		case err != nil:
			return nil, more, err
		case !gone:
			waiting = append(waiting, id)
			continue
		}
		if err := a.eraseLeft(ctx, left); err != nil {
			return nil, more, err
		}
		a.queue.drop(id)
	}
	return waiting, more, nil
}

func (a *Approvals) leftovers(ctx context.Context, mayBeGone func(performatives.SessionID) bool) (found map[performatives.SessionID]*leftovers, more bool, err error) {
	found = map[performatives.SessionID]*leftovers{}
	of := func(id performatives.SessionID) *leftovers {
		switch {
		case found[id] != nil || id == "" || !mayBeGone(id):
		case len(found) == mostSwept:
			more = true
		default:
			found[id] = &leftovers{items: map[string]string{}}
		}
		return found[id]
	}
	for _, id := range a.queue.closedSessions() {
		of(id)
	}
	if err := a.o.Store.Read(ctx, api.EscalationsStream, api.AllEscalations, 0, func(m store.Message) error {
		if item, err := readItem(m.Data); err == nil && item.Status != statusOpen {
			if left := of(item.Session); left != nil {
				left.items[m.Subject] = api.CaseLogOf(item.Organisation, string(item.ID))
			}
		}
		return nil
	}); err != nil {
		return nil, more, err
	}
	err = a.o.Store.Read(ctx, api.CaseLogStream, api.AllPeople, 0, func(m store.Message) error {
		if left := of(sessionOf(m)); left != nil {
			left.notices = append(left.notices, m.Sequence)
		}
		return nil
	})
	return found, more, err
}

// sessionOf is the session that people were told of by a notice; "" is none.
func sessionOf(m store.Message) performatives.SessionID {
	var notice struct {
		Session performatives.SessionID `json:"sessionId"`
	}
	if json.Unmarshal(m.Data, &notice) != nil {
		return ""
	}
	return notice.Session
}

// eraseLeft erases approvals last, by which a sweep that was cut short finds their case logs again.
func (a *Approvals) eraseLeft(ctx context.Context, left *leftovers) error {
	for _, sequence := range left.notices {
		if err := a.o.Store.Erase(ctx, api.CaseLogStream, sequence); err != nil {
			return err
		}
	}
	for subject, cases := range left.items {
		if err := a.o.Store.EraseAll(ctx, api.CaseLogStream, cases, nil); err != nil {
			return err
		}
		if err := a.o.Store.Purge(ctx, api.EscalationsStream, subject); err != nil {
			return err
		}
	}
	return nil
}

// closedSessions are those of the approvals in memory that have ended.
func (q *queue) closedSessions() (all []performatives.SessionID) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for _, k := range q.all.closed {
		all = append(all, k.Session)
	}
	return all
}
