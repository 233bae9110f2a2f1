package demo

import (
	"sync"

	"github.com/parley-asp/parley/transcript"
)

// A record assembles a session's transcript from what its agents receive. No agent
// receives its own acts, but together they receive every entry. An entry is shown
// in order, when the first agent has received it.
type record struct {
	show func(transcript.Entry)

	mu      sync.Mutex
	entries []transcript.Entry          // in order, shown
	early   map[uint64]transcript.Entry // received before an earlier entry
}

func newRecord(show func(transcript.Entry)) *record {
	return &record{show: show, early: map[uint64]transcript.Entry{}}
}

// add adds an entry that an agent received.
func (r *record) add(e transcript.Entry) {
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

// remark calls do between two entries.
func (r *record) remark(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}
