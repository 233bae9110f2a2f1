package approvals

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Kept says which sessions there are.
type Kept struct {
	Listed func(performatives.SessionID) bool                           // it is in memory
	Gone   func(context.Context, performatives.SessionID) (bool, error) // it ended, and its transcript is no longer kept
}

// leftovers are what is in the store of a session that is not listed.
type leftovers struct {
	items   map[string]*api.EscalationItem // by subject
	notices []uint64                       // to people
}

// Sweep takes out of the store and of memory what is left of sessions that are gone, and returns how many others are not
// listed: they may be gone soon.
func (a *Approvals) Sweep(ctx context.Context, kept Kept) (others int, err error) {
	found, err := a.leftovers(ctx, kept.Listed)
	if err != nil {
		return 0, err
	}
	for id, left := range found {
		gone, err := kept.Gone(ctx, id)
		switch {
		case err != nil:
			return others, err
		case !gone:
			others++
			continue
		}
		if err := a.eraseLeft(ctx, left); err != nil {
			return others, err
		}
		a.queue.drop(id)
	}
	return others, nil
}

func (a *Approvals) leftovers(ctx context.Context, listed func(performatives.SessionID) bool) (map[performatives.SessionID]*leftovers, error) {
	found := map[performatives.SessionID]*leftovers{}
	of := func(id performatives.SessionID) *leftovers {
		if found[id] == nil {
			found[id] = &leftovers{items: map[string]*api.EscalationItem{}}
		}
		return found[id]
	}
	for _, id := range a.queue.closedSessions() {
		if !listed(id) {
			of(id)
		}
	}
	if err := a.o.Store.Read(ctx, api.EscalationsStream, api.AllEscalations, 0, func(m store.Message) error {
		if item, err := readItem(m.Data); err == nil && item.Status != statusOpen && !listed(item.Session) {
			of(item.Session).items[m.Subject] = item
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return found, a.o.Store.Read(ctx, api.CaseLogStream, api.AllPeople, 0, func(m store.Message) error {
		if id := sessionOf(m); id != "" && !listed(id) {
			left := of(id)
			left.notices = append(left.notices, m.Sequence)
		}
		return nil
	})
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
	for subject, item := range left.items {
		if err := a.o.Store.EraseAll(ctx, api.CaseLogStream, api.CaseLogOf(item.Organisation, string(item.ID)), nil); err != nil {
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
