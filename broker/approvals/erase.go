package approvals

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Erase takes the approvals of a session, their case logs, and what people were told of it out of the store.
func (a *Approvals) Erase(ctx context.Context, s *session.State) error {
	var all []*escalation.Item
	s.Escalations(func(item *escalation.Item) { all = append(all, item) })
	for _, item := range all {
		if err := a.o.Store.Purge(ctx, api.EscalationsStream, api.Escalation(item.Org, item.Body.Urgency, string(item.ID))); err != nil {
			return err
		}
		if err := a.o.Store.EraseAll(ctx, api.CaseLogStream, api.CaseLogOf(item.Org, string(item.ID)), nil); err != nil {
			return err
		}
	}
	told := map[performatives.Organisation]bool{}
	for _, g := range s.Grants() {
		told[g.To.Organisation()] = true
	}
	for _, p := range s.Participants() {
		told[p.Organisation()] = true
	}
	ofSession := func(m store.Message) bool { return sessionOf(m) == s.ID } // what was delegated to people, and what is due
	for org := range told {
		if err := a.o.Store.EraseAll(ctx, api.CaseLogStream, api.PeopleOf(org, "*"), ofSession); err != nil {
			return err
		}
	}
	return nil
}

// Forget drops the approvals of a session that was erased, or has expired, from memory.
func (a *Approvals) Forget(id performatives.SessionID) { a.queue.drop(id) }

// drop drops the approvals of a session.
func (q *queue) drop(id performatives.SessionID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range q.byID {
		if k.Session != id {
			continue
		}
		lists := []*lists{&q.all, q.byOrg[k.Organisation]}
		remove(k, lists...)
		if k.Status != statusOpen {
			q.closedBytes -= k.size
		}
		delete(q.byID, k.ID)
		q.forget(k.ID)
	}
}
