package approvals

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Watch answers escalation.watch, once an approval that the caller may see has changed.
func (a *Approvals) Watch(ctx context.Context, c api.Caller, q api.WatchEscalations) (api.Watched, error) {
	answer := api.Watched{Changed: []api.EscalationItem{}}
	filter := api.ListEscalations{Urgency: q.Urgency, Claimed: q.Claimed, Search: q.Search}
	if err := checkList(&filter); err != nil {
		return answer, err
	}
	words := searchWords(q.Search)
	if q.Since == "" {
		_, now, _, _ := a.changes.since(0)
		answer.Cursor = strconv.FormatUint(now, 10)
		return answer, nil
	}
	since, err := strconv.ParseUint(q.Since, 10, 64)
	if err != nil {
		return answer, session.Refuse(session.MalformedEnvelope, "since is a cursor of escalation.watch")
	}
	leave, err := a.changes.watch(c)
	if err != nil {
		return answer, err
	}
	defer leave()
	wait := time.NewTimer(min(time.Duration(max(q.Wait, 0))*time.Millisecond, api.LongestWait))
	defer wait.Stop()
	for {
		ids, now, forgotten, next := a.changes.since(since)
		since = max(now, since)
		size := 0
		for _, id := range ids {
			found, known := a.queue.find(id)
			if !known || !a.matches(c, found, &filter, words) {
				continue
			}
			if item, visible := a.seenBy(ctx, c, found); visible {
				answer.Changed = append(answer.Changed, item)
				size += found.size
			}
		}
		if size > api.MaxPageBytes {
			answer.Changed, forgotten = []api.EscalationItem{}, true
		}
		answer.Cursor, answer.Reset = strconv.FormatUint(since, 10), forgotten
		if len(answer.Changed) > 0 || forgotten {
			return answer, nil
		}
		select {
		case <-next:
		case <-wait.C:
			return answer, nil
		case <-a.stopped:
			return answer, nil
		case <-ctx.Done():
			return answer, nil
		}
	}
}

// changes are the newest messages of the escalations' stream, for those who watch.
type changes struct {
	mu       sync.Mutex
	recent   []change      // by sequence
	floor    uint64        // changes up to this sequence are forgotten
	next     chan struct{} // closed by the next change
	watching map[performatives.Agent]int
}

// A change is that an approval was written.
type change struct {
	sequence uint64 // in the stream
	id       escalation.ID
}

// maxChanges are remembered.
const maxChanges = 1 << 14

func newChanges() *changes {
	return &changes{next: make(chan struct{}), watching: map[performatives.Agent]int{}}
}

// add wakes those who watch.
func (c *changes) add(sequence uint64, id escalation.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) == maxChanges {
		c.floor = c.recent[maxChanges/2-1].sequence
		c.recent = slices.Delete(c.recent, 0, maxChanges/2)
	}
	c.recent = append(c.recent, change{sequence, id})
	close(c.next)
	c.next = make(chan struct{})
}

// maxWatches are one principal's at a time.
const maxWatches = 64

// watch counts a watch of a caller until it leaves.
func (c *changes) watch(caller api.Caller) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := caller.Agent
	if c.watching[who] >= maxWatches && !caller.Operator {
		return nil, api.RateLimited("watches", time.Second, "you watch the inbox %d times already, which is the most at a time", maxWatches)
	}
	c.watching[who]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watching[who]--; c.watching[who] == 0 {
			delete(c.watching, who)
		}
	}, nil
}

// since are the approvals that were written after a sequence, each once, and the sequence of now.
// forgotten says that not all are remembered; next closes with the next change.
func (c *changes) since(sequence uint64) (ids []escalation.ID, now uint64, forgotten bool, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.recent); n > 0 {
		now = c.recent[n-1].sequence
	}
	if sequence < c.floor {
		return nil, now, true, c.next
	}
	seen := map[escalation.ID]bool{}
	from, _ := slices.BinarySearchFunc(c.recent, sequence+1, func(c change, s uint64) int { return cmp.Compare(c.sequence, s) })
	for _, change := range c.recent[from:] {
		if !seen[change.id] {
			seen[change.id] = true
			ids = append(ids, change.id)
		}
	}
	return ids, now, false, c.next
}
