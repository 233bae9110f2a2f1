package wakeups

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// An entry is merged into another one that is told again shortly, and never into itself, however early it comes.
func TestMerging(t *testing.T) {
	t.Parallel()
	const id performatives.SessionID = "s"
	came := time.Now()
	of := func(sequence uint64, after time.Duration) store.Delivery {
		return store.Delivery{Message: store.Message{Sequence: sequence, Time: came.Add(after)}}
	}
	first, second := of(1, 0), of(2, time.Second)
	f := &failing{due: map[performatives.SessionID]again{}}
	if f.merges(id, first, 10) {
		t.Error("merged into none")
	}
	f.later(id, first, 10, shortest/2)
	if f.merges(id, first, 10) {
		t.Error("merged into itself")
	}
	if !f.merges(id, second, 9) || f.merges("other", second, 9) {
		t.Error("an entry of the session is not merged, or one of another is")
	}
	if since := f.since(id, first, 10); since != 9 {
		t.Errorf("the call is about what was since %d", since)
	}
	if f.merges(id, of(3, giveUp), 11) {
		t.Error("merged into one that is given up soon")
	}
	f.later(id, second, 12, time.Hour)
	if f.merges(id, first, 10) {
		t.Error("merged into one that is told much later")
	}
	if since := f.since(id, second, 12); since != 9 {
		t.Errorf("the call of the second is about what was since %d", since)
	}
	f.done(id, first)
	if len(f.due) != 1 {
		t.Error("one that is done took another away")
	}
	f.done(id, second)
	if len(f.due) != 0 || f.since(id, second, 12) != 12 {
		t.Error("one that is done stays")
	}
}
