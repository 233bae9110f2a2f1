package sessionlist

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A table holds session rows in memory, a million of them in about 60 bytes each:
// agents are numbers, and a binary search finds a session. Session ids are UUIDv7s,
// which sort by when they were made.
type table struct {
	names   []performatives.Agent // by number
	numbers map[performatives.Agent]uint32
	rows    []compactRow
	all     []uint32            // indexes of rows, sorted by session
	of      [][]uint32          // by agent: the rows that name it, sorted by session
	more    map[uint32][]uint32 // by row: the participants after the first four
}

// A compactRow is a session row in a table.
type compactRow struct {
	id           [16]byte
	participants [4]uint32 // numbers, from 1; 0 is nobody
	entries      uint32
	page         uint32 // of the archive's index; 0 is none
	state        session.Phase
}

func newTable() *table {
	return &table{numbers: map[performatives.Agent]uint32{}, names: []performatives.Agent{""}, of: [][]uint32{nil}, more: map[uint32][]uint32{}}
}

// number is an agent's number; an agent that is not known gets the next.
func (t *table) number(a performatives.Agent) uint32 {
	n, known := t.numbers[a]
	if !known {
		n = uint32(len(t.names)) //nolint:gosec // there are fewer agents
		a = performatives.Agent(strings.Clone(string(a)))
		t.numbers[a], t.names, t.of = n, append(t.names, a), append(t.of, nil)
	}
	return n
}

// compact is a session's id in 16 bytes, all zero for what is not an id.
func compact(id performatives.SessionID) (c [16]byte) {
	digits := strings.ReplaceAll(string(id), "-", "")
	if _, err := hex.Decode(c[:], []byte(digits[:min(len(digits), 2*len(c))])); err != nil || len(digits) != 2*len(c) {
		return [16]byte{}
	}
	return c
}

func (r *compactRow) session() performatives.SessionID {
	h := hex.AppendEncode(make([]byte, 0, 36), r.id[:])
	for _, at := range []int{8, 13, 18, 23} {
		h = slices.Insert(h, at, '-')
	}
	return performatives.SessionID(h)
}

// find searches rows that are sorted by session.
func (t *table) find(sorted []uint32, id [16]byte) (at int, ok bool) {
	return slices.BinarySearchFunc(sorted, id, func(r uint32, id [16]byte) int { return bytes.Compare(t.rows[r].id[:], id[:]) })
}

// row is a session's row.
func (t *table) row(id performatives.SessionID) (row Row, ok bool) {
	at, ok := t.find(t.all, compact(id))
	if !ok {
		return row, false
	}
	r := t.all[at]
	row = Row{State: t.rows[r].state, Entries: uint64(t.rows[r].entries)}
	for _, n := range t.participants(r) {
		row.Participants = append(row.Participants, t.names[n])
	}
	return row, true
}

// part tells whether a session is there, and names an agent.
func (t *table) part(id performatives.SessionID, a performatives.Agent) (there, part bool) {
	at, there := t.find(t.all, compact(id))
	n, known := t.numbers[a]
	if !there || !known {
		return there, false
	}
	r := t.all[at]
	return true, slices.Contains(t.rows[r].participants[:], n) || slices.Contains(t.more[r], n)
}

func (t *table) participants(r uint32) []uint32 {
	named := t.rows[r].participants[:]
	if end := slices.Index(named, 0); end >= 0 {
		return named[:end]
	}
	return slices.Concat(named, t.more[r])
}

// put adds a session, or replaces its row.
func (t *table) put(id performatives.SessionID, row Row) {
	c := compact(id)
	at, ok := t.find(t.all, c)
	if !ok {
		r := t.add(c, row)
		t.all = slices.Insert(t.all, at, r)
		for _, n := range t.participants(r) {
			t.addTo(n, r)
		}
		return
	}
	r := t.all[at]
	old := slices.Clone(t.participants(r))
	t.fill(r, row)
	for _, n := range t.participants(r) {
		if !slices.Contains(old, n) {
			t.addTo(n, r)
		}
	}
}

// addTo adds a row to those of an agent.
func (t *table) addTo(n, r uint32) {
	if at, ok := t.find(t.of[n], t.rows[r].id); !ok {
		t.of[n] = slices.Insert(t.of[n], at, r)
	}
}

// add makes a row that is not sorted in yet.
func (t *table) add(id [16]byte, row Row) uint32 {
	t.rows = append(t.rows, compactRow{id: id})
	r := uint32(len(t.rows) - 1) //nolint:gosec // 4 billion sessions need other streams first
	t.fill(r, row)
	return r
}

func (t *table) fill(r uint32, row Row) {
	to := &t.rows[r]
	to.state, to.entries, to.participants = row.State, uint32(min(row.Entries, 1<<32-1)), [4]uint32{}
	delete(t.more, r)
	for i, a := range row.Participants {
		if n := t.number(a); i < len(to.participants) {
			to.participants[i] = n
		} else {
			t.more[r] = append(t.more[r], n)
		}
	}
}

// page is the page of the archive's index that has a session, 0 for none.
func (t *table) page(id performatives.SessionID) uint64 {
	if at, ok := t.find(t.all, compact(id)); ok {
		return uint64(t.rows[t.all[at]].page)
	}
	return 0
}

func (t *table) setPage(id performatives.SessionID, page uint64) {
	if at, ok := t.find(t.all, compact(id)); ok {
		t.rows[t.all[at]].page = uint32(page) //nolint:gosec // there are fewer pages
	}
}

// sort sorts all rows that were added. A session that was added twice was moving
// to the archive: one of its rows has the page.
func (t *table) sort() {
	t.all = make([]uint32, len(t.rows))
	for r := range t.rows {
		t.all[r] = uint32(r)
	}
	slices.SortFunc(t.all, t.order)
	t.all = slices.CompactFunc(t.all, func(a, b uint32) bool {
		same := t.rows[a].id == t.rows[b].id
		if same {
			page := max(t.rows[a].page, t.rows[b].page)
			t.rows[a].page, t.rows[b].page = page, page
		}
		return same
	})
	for _, r := range t.all {
		for _, n := range t.participants(r) {
			t.of[n] = append(t.of[n], r)
		}
	}
}

func (t *table) order(a, b uint32) int { return bytes.Compare(t.rows[a].id[:], t.rows[b].id[:]) }

// merge adds the rows of a small table, which may be newer, in one pass.
func (t *table) merge(few *table) {
	var fresh []uint32
	of := map[uint32][]uint32{}
	for _, r := range few.all {
		id := few.rows[r].session()
		row, _ := few.row(id)
		if old, ok := t.row(id); ok {
			if old.Entries <= row.Entries {
				t.put(id, row)
			}
			if page := few.rows[r].page; page > 0 {
				t.setPage(id, uint64(page))
			}
			continue
		}
		at := t.add(few.rows[r].id, row)
		t.rows[at].page = few.rows[r].page
		fresh = append(fresh, at)
		for _, n := range t.participants(at) {
			of[n] = append(of[n], at)
		}
	}
	t.all = t.mergeSorted(t.all, fresh)
	for n, rows := range of {
		t.of[n] = t.mergeSorted(t.of[n], rows)
	}
}

// mergeSorted merges two sorted lists of rows.
func (t *table) mergeSorted(a, b []uint32) []uint32 {
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

// newest picks at most n sessions in a state ("" is any) from sorted rows, the
// newest first, before a cursor.
func (t *table) newest(sorted []uint32, state, before string, n int) []performatives.SessionID {
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
