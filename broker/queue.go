package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// items is the escalation inbox in memory: one subject for each escalation,
// whose last message says how it stands. It is derived from the transcripts and
// the desks. Items are kept in the order in which they are listed, so that a
// page of ten thousand costs what a page of ten costs.
type items struct {
	b *Broker

	mu     sync.RWMutex
	byID   map[escalation.ID]*kept
	open   []*kept // due first
	closed []*kept // ended last; the newest of them
	byOrg  map[performatives.Organisation]*[2][]*kept

	closedBytes int // of closed
	most        int // of closed

	changes []change      // by position in the stream
	floor   uint64        // changes up to it are not remembered
	changed chan struct{} // closed by the next change

	watching map[performatives.Agent]int
}

// kept is an item that nobody changes any more.
type kept struct {
	*api.EscalationItem
	key  string // by which it is listed
	text string // in which it is searched
}

func asKept(item *api.EscalationItem) *kept { return &kept{item, keyOf(item), searchable(item)} }

// A change is that an item was written.
type change struct {
	position uint64
	id       escalation.ID
}

// maxChanges are remembered for those who watch.
const maxChanges = 1 << 14

func (b *Broker) openItems(ctx context.Context) error {
	b.items = &items{
		b: b, byID: map[escalation.ID]*kept{}, byOrg: map[performatives.Organisation]*[2][]*kept{}, changed: make(chan struct{}),
		watching: map[performatives.Agent]int{}, most: maxResolved,
	}
	return b.store.FollowAll(ctx, b.work, api.EscalationsStream, func(m store.Message) {
		item := new(api.EscalationItem)
		if err := json.Unmarshal(m.Data, item); err != nil {
			b.Log.Error("escalation item", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		b.items.keep(item)
		b.items.tell(change{m.Sequence, item.ID})
	})
}

// Keep takes the newer word on an item.
func (i *items) keep(item *api.EscalationItem) {
	item.Transcript, item.Next = nil, nil // the stream and the session have them
	now := i.b.Now()
	asOf(item, now)
	k := asKept(item)
	i.mu.Lock()
	defer i.mu.Unlock()
	old := i.byID[item.ID]
	if old != nil && !newer(old.EscalationItem, item) {
		return
	}
	org := i.byOrg[item.Organisation]
	if org == nil {
		org = new([2][]*kept)
		i.byOrg[item.Organisation] = org
	}
	if old != nil {
		of, all := &org[0], &i.open
		if old.Status != statusOpen {
			of, all = &org[1], &i.closed
			i.closedBytes -= weight(old.EscalationItem)
		}
		*of, *all = without(*of, old), without(*all, old)
	}
	of, all := &org[0], &i.open
	if item.Status != statusOpen {
		of, all = &org[1], &i.closed
		i.closedBytes += weight(item)
	}
	*of, *all = with(*of, k), with(*all, k)
	i.byID[item.ID] = k
	i.forgetResolved()
}

// keyOf sorts open items by when an answer is due, and others by when they ended.
func keyOf(item *api.EscalationItem) string {
	if item.Status == statusOpen {
		return cmp.Or(item.Due, item.Deadline) + string(item.ID)
	}
	return item.DecidedAt + string(item.ID)
}

func byKey(k *kept, key string) int { return strings.Compare(k.key, key) }

func with(list []*kept, k *kept) []*kept {
	at, there := slices.BinarySearchFunc(list, k.key, byKey)
	if there {
		list[at] = k
		return list
	}
	return slices.Insert(list, at, k)
}

func without(list []*kept, k *kept) []*kept {
	at, there := slices.BinarySearchFunc(list, k.key, byKey)
	if !there {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// tell wakes those who watch.
func (i *items) tell(c change) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.changes) == maxChanges {
		i.floor = i.changes[maxChanges/2-1].position
		i.changes = slices.Delete(i.changes, 0, maxChanges/2)
	}
	i.changes = append(i.changes, c)
	close(i.changed)
	i.changed = make(chan struct{})
}

// maxWatches are one principal's at a time.
const maxWatches = 64

// watches lets a caller wait for changes, until it leaves.
func (i *items) watches(c api.Caller) (leave func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.watching[c.Agent] >= maxWatches && !c.Operator {
		return nil, limited("watches", time.Second, "you watch the inbox %d times already, and there are no more than that at a time", maxWatches)
	}
	i.watching[c.Agent]++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		add(i.watching, c.Agent, -1)
	}, nil
}

// since are the items that were written after a position of the stream, each
// once, and the position of now. forgotten says that not all are remembered.
func (i *items) since(position uint64) (items []*kept, now uint64, forgotten bool, more <-chan struct{}) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if n := len(i.changes); n > 0 {
		now = i.changes[n-1].position
	}
	if position < i.floor {
		return nil, now, true, i.changed
	}
	from, _ := slices.BinarySearchFunc(i.changes, position+1, func(c change, p uint64) int { return int(c.position) - int(p) }) //nolint:gosec // far below 2^63
	seen := map[escalation.ID]bool{}
	for _, c := range i.changes[from:] {
		if k := i.byID[c.id]; k != nil && !seen[c.id] {
			seen[c.id] = true
			items = append(items, k)
		}
	}
	return items, now, false, i.changed
}

// find is an item by its id.
func (i *items) find(id escalation.ID) (*kept, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	k, ok := i.byID[id]
	return k, ok
}

// of are the open and the other items of an organisation, "" for all. What is
// returned may be kept: nobody changes it.
func (i *items) of(org performatives.Organisation) (open, closed []*kept) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if org == "" {
		return slices.Clone(i.open), slices.Clone(i.closed)
	}
	if of := i.byOrg[org]; of != nil {
		return slices.Clone(of[0]), slices.Clone(of[1])
	}
	return nil, nil
}

// asOf says how an item stands at a time: whose turn it is, until when, and
// what a decision on it has to name.
func asOf(item *api.EscalationItem, now time.Time) {
	if item.Route == nil {
		return
	}
	route := *item.Route
	at := stamp(now)
	for route.Level = 0; route.Level < len(route.Levels)-1 && route.Levels[route.Level].Due <= at; {
		route.Level++
	}
	item.Due = route.Levels[route.Level].Due
	if c := item.Desk.Claim; c != nil && !now.Before(c.Until) {
		item.Desk.Claim = nil
	}
	item.Route = &route
	item.Shown = shownHash(item)
}

// shownHash is of what matters to who decides: which question, how far the
// conversation and the votes are, who is asked, and what colleagues said.
func shownHash(item *api.EscalationItem) performatives.Hash {
	data, err := json.Marshal(struct {
		ID       escalation.ID      `json:"escalationId"`
		Status   string             `json:"status"`
		Head     performatives.Hash `json:"head"`
		Due      string             `json:"due"`
		Votes    int                `json:"votes"`
		Revision uint64             `json:"revision"`
	}{item.ID, item.Status, item.Head.Hash, item.Due, len(item.Votes), item.Revision})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return performatives.Hash("sha256:" + hex.EncodeToString(sum[:]))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
