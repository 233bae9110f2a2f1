package sessionlist

import (
	"bytes"
	"iter"
	"slices"
	"sort"
)

// runs are sorted rows, in runs of at most maxRun. An insertion moves the rows of
// one run, wherever it sorts: ids are made by those who open sessions, and may be old.
type runs [][]uint32

const maxRun = 512

// search finds the row that an order returns 0 for, or where that would be: which run, and where in it.
func (s runs) search(by order) (run, at int, ok bool) {
	run = max(sort.Search(len(s), func(n int) bool { return by(s[n][0]) > 0 })-1, 0)
	if run < len(s) {
		at, ok = slices.BinarySearchFunc(s[run], by, func(r uint32, by order) int { return by(r) })
	}
	return run, at, ok
}

// An order of rows compares them to one that is searched for.
type order = func(r uint32) int

func (t *table) byPlace(at Place) order {
	return func(r uint32) int { return t.rows[r].Compare(at) }
}

func (t *table) byID(id [16]byte) order {
	return func(r uint32) int { return bytes.Compare(t.rows[r].id[:], id[:]) }
}

// rowOf is the row of a session.
func (t *table) rowOf(id [16]byte) (r uint32, ok bool) {
	if r, ok = t.all.find(t.byPlace(Place{timeIn(id), id})); !ok {
		r, ok = t.apart.find(t.byID(id))
	}
	return r, ok
}

// insertAll adds a row wherever it belongs.
func (t *table) insertAll(r uint32) {
	at := t.rows[r].Place
	t.all = t.all.insert(r, t.byPlace(at))
	if at.opened != timeIn(at.id) {
		t.apart = t.apart.insert(r, t.byID(at.id))
	}
	for _, n := range t.participants(r) {
		t.of[n] = t.of[n].insert(r, t.byPlace(at))
	}
}

// removeAll takes a row out of where it is.
func (t *table) removeAll(r uint32) {
	at := t.rows[r].Place
	t.all, t.apart = t.all.remove(t.byPlace(at)), t.apart.remove(t.byID(at.id))
	for _, n := range t.participants(r) {
		t.of[n] = t.of[n].remove(t.byPlace(at))
	}
}

// find is the row that is searched for.
func (s runs) find(by order) (r uint32, ok bool) {
	run, at, ok := s.search(by)
	if !ok {
		return 0, false
	}
	return s[run][at], true
}

// insert adds a row, unless it is there.
func (s runs) insert(r uint32, by order) runs {
	run, at, ok := s.search(by)
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
func (s runs) remove(by order) runs {
	run, at, ok := s.search(by)
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

// between are the rows from one to another, the last first.
func (s runs) between(from, to order) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		run, at, there := s.search(to)
		if there {
			at++
		}
		for r := range s.before(run, at) {
			if from(r) < 0 || !yield(r) {
				return
			}
		}
	}
}

// values are all rows, the last first.
func (s runs) values() iter.Seq[uint32] { return s.before(len(s), 0) }
