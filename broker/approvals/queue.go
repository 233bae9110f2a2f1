package approvals

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// queue is the escalation inbox in memory. In the stream each approval has a subject, whose last
// message says how it is. Lists are sorted, so a page of ten thousand costs what a page of ten costs.
type queue struct {
	now    func() time.Time
	forget func(escalation.ID) // called with each approval that is dropped

	mu    sync.RWMutex
	byID  map[escalation.ID]*approval
	all   lists
	byOrg map[performatives.Organisation]*lists

	closedBytes int // of all.closed
	maxClosed   int // approvals in all.closed
}

// Of the approvals that have ended, memory has the newest: those that people list. The stream has all.
const (
	maxClosed      = 10_000
	maxClosedBytes = 64 << 20
)

// lists are sorted approvals.
type lists struct {
	open   []*approval // due first
	closed []*approval // ended first
}

// with is the list that an approval belongs on.
func (l *lists) with(item *api.EscalationItem) *[]*approval {
	if item.Status == statusOpen {
		return &l.open
	}
	return &l.closed
}

// An approval never changes; a newer one takes its place.
type approval struct {
	*api.EscalationItem
	key  string // by which it is sorted
	text string // in which it is searched
	open string // … by who opens nothing that is sealed
	size int    // in bytes, as it is sent
}

func newApproval(item *api.EscalationItem, at time.Time) *approval {
	item.Transcript, item.Next = nil, nil // the session has them
	asOf(item, at)
	shown := *item
	shown.Hide(func(performatives.Organisation) bool { return false }, nil)
	return &approval{item, sortKey(item), searchable(item), searchable(&shown), fit.Size(item)}
}

// sortKey sorts open approvals by when an answer is due, and others by when they ended.
func sortKey(item *api.EscalationItem) string {
	if item.Status == statusOpen {
		return cmp.Or(item.Due, item.Deadline) + string(item.ID)
	}
	return item.DecidedAt + string(item.ID)
}

func newQueue(now func() time.Time, forget func(escalation.ID)) *queue {
	return &queue{
		now: now, forget: forget, maxClosed: maxClosed,
		byID: map[escalation.ID]*approval{}, byOrg: map[performatives.Organisation]*lists{},
	}
}

func (a *Approvals) followQueue(ctx context.Context) error {
	return a.o.Store.FollowAll(ctx, a.work, api.EscalationsStream, func(m store.Message) {
		item, err := readItem(m.Data)
		if err != nil {
			a.o.Log.Error("escalation item", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		a.queue.put(item)
		a.changes.add(m.Sequence, item.ID)
	})
}

// put takes the newer approval.
func (q *queue) put(item *api.EscalationItem) {
	k := newApproval(item, q.now())
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.byID[item.ID]
	if old != nil && !newer(old.EscalationItem, item) {
		return
	}
	org := q.byOrg[item.Organisation]
	if org == nil {
		org = new(lists)
		q.byOrg[item.Organisation] = org
	}
	if old != nil {
		remove(old, &q.all, org)
		if old.Status != statusOpen {
			q.closedBytes -= old.size
		}
	}
	if item.Status != statusOpen {
		q.closedBytes += k.size
	}
	for _, l := range []*lists{&q.all, org} {
		insert(l.with(item), k)
	}
	q.byID[item.ID] = k
	q.trim()
}

// newer reports whether an approval says more than what is known of it: once it has ended it stays so,
// and votes and actions only become more.
func newer(old, item *api.EscalationItem) bool {
	if (old.Status == statusOpen) != (item.Status == statusOpen) {
		return old.Status == statusOpen
	}
	if len(old.Votes) != len(item.Votes) {
		return len(old.Votes) < len(item.Votes)
	}
	return old.Case.Actions < item.Case.Actions
}

func byKey(k *approval, key string) int { return strings.Compare(k.key, key) }

func insert(list *[]*approval, k *approval) {
	at, exists := slices.BinarySearchFunc(*list, k.key, byKey)
	if exists {
		(*list)[at] = k
		return
	}
	*list = slices.Insert(*list, at, k)
}

func remove(k *approval, from ...*lists) {
	for _, l := range from {
		list := l.with(k.EscalationItem)
		if at, exists := slices.BinarySearchFunc(*list, k.key, byKey); exists {
			*list = slices.Delete(*list, at, at+1)
		}
	}
}

// trim drops the approvals that ended first. q.mu is held.
func (q *queue) trim() {
	n := 0
	for len(q.all.closed)-n > q.maxClosed || q.closedBytes > maxClosedBytes && n < len(q.all.closed) {
		k := q.all.closed[n]
		n++
		q.closedBytes -= k.size
		delete(q.byID, k.ID)
		remove(k, q.byOrg[k.Organisation])
		q.forget(k.ID)
	}
	q.all.closed = slices.Delete(q.all.closed, 0, n)
}

// find is an approval by its id.
func (q *queue) find(id escalation.ID) (*approval, bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	k, ok := q.byID[id]
	return k, ok
}

// of are the approvals of an organisation, "" for all. The caller may change the lists.
func (q *queue) of(org performatives.Organisation) lists {
	q.mu.RLock()
	defer q.mu.RUnlock()
	of := &q.all
	if org != "" {
		of = q.byOrg[org]
	}
	if of == nil {
		return lists{}
	}
	return lists{slices.Clone(of.open), slices.Clone(of.closed)}
}

// organisations are those that ever had an approval.
func (q *queue) organisations() []performatives.Organisation {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.Collect(maps.Keys(q.byOrg))
}
