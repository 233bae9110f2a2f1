package demo

import (
	"sync"

	"github.com/parley-asp/parley/transcript"
)

// A record puts a session together out of what its agents hear. Each hears the
// others and not itself, so between them they hear every entry; whoever hears
// one first, it is shown when those before it have been.
type record struct {
	show func(transcript.Entry)

	mu      sync.Mutex
	entries []transcript.Entry          // in order, shown
	early   map[uint64]transcript.Entry // that came before one before them
}

func newRecord(show func(transcript.Entry)) *record {
	return &record{show: show, early: map[uint64]transcript.Entry{}}
}

// heard takes an entry that somebody heard.
func (r *record) heard(e transcript.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Stamp.Sequence < uint64(len(r.entries)) {
		return
	}
	r.early[e.Stamp.Sequence] = e
	for next := uint64(len(r.entries)); ; next++ {
		e, there := r.early[next]
		if !there {
			return
		}
		delete(r.early, next)
		r.entries = append(r.entries, e)
		r.show(e)
	}
}

// beside does something between two entries.
func (r *record) beside(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}
