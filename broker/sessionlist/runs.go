package sessionlist

import (
	"bytes"
	"iter"
	"slices"
	"sort"
)

// runs are rows sorted by session, in runs of at most maxRun. An insertion moves the rows of
// one run, wherever its session sorts: ids are made by those who open sessions, and may be old.
type runs [][]uint32

const maxRun = 512

// search finds what order returns 0 for, or where that would be: which run, and where in it.
func (s runs) search(order func(r uint32) int) (run, at int, ok bool) {
	run = max(sort.Search(len(s), func(n int) bool { return order(s[n][0]) > 0 })-1, 0)
	if run < len(s) {
		at, ok = slices.BinarySearchFunc(s[run], order, func(r uint32, order func(uint32) int) int { return order(r) })
	}
	return run, at, ok
}

// find searches for a session.
func (t *table) find(s runs, id [16]byte) (run, at int, ok bool) {
	return s.search(func(r uint32) int { return bytes.Compare(t.rows[r].id[:], id[:]) })
}

// rowOf is the row of a session.
func (t *table) rowOf(id [16]byte) (r uint32, ok bool) {
	run, at, ok := t.find(t.all, id)
	if !ok {
		return 0, false
	}
	return t.all[run][at], true
}

// insert adds a row, unless it is there.
func (t *table) insert(s runs, r uint32) runs {
	run, at, ok := t.find(s, t.rows[r].id)
	switch {
	case ok:
		return s
	case len(s) == 0, run == len(s)-1 && at == maxRun: // the newest: leave full runs behind
		return append(s, []uint32{r})
	case len(s[run]) == maxRun:
		half := maxRun / 2
		s = slices.Insert(s, run+1, slices.Clone(s[run][half:]))
		if s[run] = s[run][:half:half]; at > half {
			run, at = run+1, at-half
		}
	}
	s[run] = slices.Insert(s[run], at, r)
	return s
}

// remove takes a row out, if it is there.
func (t *table) remove(s runs, r uint32) runs {
	run, at, ok := t.find(s, t.rows[r].id)
	if !ok {
		return s
	}
	if s[run] = slices.Delete(s[run], at, at+1); len(s[run]) == 0 {
		return slices.Delete(s, run, run+1)
	}
	return s
}

// before are the rows before a position, the last first.
func (s runs) before(run, at int) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for ; run >= 0; run, at = run-1, maxRun {
			if run == len(s) {
				continue
			}
			for _, r := range slices.Backward(s[run][:min(at, len(s[run]))]) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// values are all rows, the last first.
func (s runs) values() iter.Seq[uint32] { return s.before(len(s), 0) }
