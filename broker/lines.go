package broker

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// lines are sessions in memory, a million of them in some 60 bytes each:
// principals are numbers, and sessions are found by searching what is sorted.
// UUIDv7s sort by when they were made.
type lines struct {
	names   []performatives.Agent // by their number
	numbers map[performatives.Agent]uint32
	rows    []brief
	all     []uint32            // rows, by session
	of      [][]uint32          // by principal: the rows that name it, by session
	more    map[uint32][]uint32 // by row: parties that have no room in it
}

// A brief is what they hold of a session.
type brief struct {
	id      [16]byte
	parties [4]uint32 // numbers, from 1; 0 is nobody
	entries uint32
	page    uint32 // of the catalogue; 0 is none
	state   session.Phase
}

func newLines() *lines {
	return &lines{numbers: map[performatives.Agent]uint32{}, names: []performatives.Agent{""}, of: [][]uint32{nil}, more: map[uint32][]uint32{}}
}

// number is that of a principal, a new one for a new one.
func (t *lines) number(a performatives.Agent) uint32 {
	n, known := t.numbers[a]
	if !known {
		n = uint32(len(t.names)) //nolint:gosec // there are fewer principals than that
		a = performatives.Agent(strings.Clone(string(a)))
		t.numbers[a], t.names, t.of = n, append(t.names, a), append(t.of, nil)
	}
	return n
}

// compact is a session's id in 16 bytes; what is none is that of nobody.
func compact(id performatives.SessionID) (c [16]byte) {
	digits := strings.ReplaceAll(string(id), "-", "")
	if _, err := hex.Decode(c[:], []byte(digits[:min(len(digits), 2*len(c))])); err != nil || len(digits) != 2*len(c) {
		return [16]byte{}
	}
	return c
}

func (r *brief) session() performatives.SessionID {
	h := hex.AppendEncode(make([]byte, 0, 36), r.id[:])
	for _, at := range []int{8, 13, 18, 23} {
		h = slices.Insert(h, at, '-')
	}
	return performatives.SessionID(h)
}

// find searches rows that are sorted by session.
func (t *lines) find(sorted []uint32, id [16]byte) (at int, there bool) {
	return slices.BinarySearchFunc(sorted, id, func(r uint32, id [16]byte) int { return bytes.Compare(t.rows[r].id[:], id[:]) })
}

// line is what there is of a session.
func (t *lines) line(id performatives.SessionID) (l line, there bool) {
	at, there := t.find(t.all, compact(id))
	if !there {
		return l, false
	}
	r := t.all[at]
	l = line{State: t.rows[r].state, Entries: uint64(t.rows[r].entries)}
	for _, n := range t.parties(r) {
		l.Parties = append(l.Parties, t.names[n])
	}
	return l, true
}

func (t *lines) parties(r uint32) []uint32 {
	named := t.rows[r].parties[:]
	if end := slices.Index(named, 0); end >= 0 {
		return named[:end]
	}
	return slices.Concat(named, t.more[r])
}

// put adds a session or replaces what there was of it.
func (t *lines) put(id performatives.SessionID, l line) {
	c := compact(id)
	at, there := t.find(t.all, c)
	if !there {
		r := t.add(c, l)
		t.all = slices.Insert(t.all, at, r)
		for _, n := range t.parties(r) {
			t.enter(n, r)
		}
		return
	}
	r := t.all[at]
	old := slices.Clone(t.parties(r))
	t.fill(r, l)
	for _, n := range t.parties(r) {
		if !slices.Contains(old, n) {
			t.enter(n, r)
		}
	}
}

// enter sorts a row in with one principal that it names.
func (t *lines) enter(n, r uint32) {
	if at, there := t.find(t.of[n], t.rows[r].id); !there {
		t.of[n] = slices.Insert(t.of[n], at, r)
	}
}

// add makes a row, and sorts it in nowhere.
func (t *lines) add(id [16]byte, l line) uint32 {
	t.rows = append(t.rows, brief{id: id})
	r := uint32(len(t.rows) - 1) //nolint:gosec // 4 billion sessions need other streams first
	t.fill(r, l)
	return r
}

func (t *lines) fill(r uint32, l line) {
	to := &t.rows[r]
	to.state, to.entries, to.parties = l.State, uint32(min(l.Entries, 1<<32-1)), [4]uint32{}
	delete(t.more, r)
	for i, a := range l.Parties {
		if n := t.number(a); i < len(to.parties) {
			to.parties[i] = n
		} else {
			t.more[r] = append(t.more[r], n)
		}
	}
}

// page is where in the catalogue a session is, 0 for nowhere.
func (t *lines) page(id performatives.SessionID) uint64 {
	if at, there := t.find(t.all, compact(id)); there {
		return uint64(t.rows[t.all[at]].page)
	}
	return 0
}

// paged says where in the catalogue a session is.
func (t *lines) paged(id performatives.SessionID, page uint64) {
	if at, there := t.find(t.all, compact(id)); there {
		t.rows[t.all[at]].page = uint32(page) //nolint:gosec // there are fewer pages
	}
}

// sort sorts in all rows that were added. A session that was added twice has been on its
// way into the catalogue.
func (t *lines) sort() {
	t.all = make([]uint32, len(t.rows))
	for r := range t.rows {
		t.all[r] = uint32(r)
	}
	slices.SortFunc(t.all, t.order)
	t.all = slices.CompactFunc(t.all, func(a, b uint32) bool {
		same := t.rows[a].id == t.rows[b].id
		if same && t.rows[a].page == 0 {
			t.rows[a].page = t.rows[b].page
		}
		return same
	})
	for _, r := range t.all {
		for _, n := range t.parties(r) {
			t.of[n] = append(t.of[n], r)
		}
	}
}

func (t *lines) order(a, b uint32) int { return bytes.Compare(t.rows[a].id[:], t.rows[b].id[:]) }

// absorb takes in few lines that may be newer, in one pass over what is here.
func (t *lines) absorb(few *lines) {
	var fresh []uint32
	of := map[uint32][]uint32{}
	for _, r := range few.all {
		id := few.rows[r].session()
		l, _ := few.line(id)
		if old, there := t.line(id); there {
			if old.Entries <= l.Entries {
				t.put(id, l)
			}
			if page := few.rows[r].page; page > 0 {
				t.paged(id, uint64(page))
			}
			continue
		}
		at := t.add(few.rows[r].id, l)
		t.rows[at].page = few.rows[r].page
		fresh = append(fresh, at)
		for _, n := range t.parties(at) {
			of[n] = append(of[n], at)
		}
	}
	t.all = t.merged(t.all, fresh)
	for n, rows := range of {
		t.of[n] = t.merged(t.of[n], rows)
	}
}

// merged is two sorted lists of rows as one.
func (t *lines) merged(a, b []uint32) []uint32 {
	all := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if t.order(a[0], b[0]) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// newest picks at most n sessions that are in a state ("" for any) from sorted
// rows, the newest first, before a cursor.
func (t *lines) newest(sorted []uint32, state, before string, n int) []performatives.SessionID {
	end := len(sorted)
	if before != "" {
		end, _ = slices.BinarySearchFunc(sorted, before, func(r uint32, before string) int {
			return cmp.Compare(string(t.rows[r].session()), before)
		})
	}
	var found []performatives.SessionID
	for i := end - 1; i >= 0 && len(found) < n; i-- {
		if r := &t.rows[sorted[i]]; state == "" || r.state.String() == state {
			found = append(found, r.session())
		}
	}
	return found
}

// ofOne are the sorted rows that name a principal; ofAll all rows; ofMany for each
// principal that is wanted those that name it.
func (t *lines) ofOne(a performatives.Agent) [][]uint32 { return [][]uint32{t.of[t.numbers[a]]} }
func (t *lines) ofAll() [][]uint32                      { return [][]uint32{t.all} }
func (t *lines) ofMany(wanted func(performatives.Agent) bool) (found [][]uint32) {
	for n, a := range t.names {
		if a != "" && wanted(a) {
			found = append(found, t.of[n])
		}
	}
	return found
}
