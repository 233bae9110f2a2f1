package sessionlist

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A table holds session rows in memory, a million of them in about 70 bytes each:
// agents are numbers, and a binary search finds a session. Rows sort by when their sessions were
// opened. For nearly all ids of agents that is the time in the id; those of the SDKs are hashes.
type table struct {
	names   []performatives.Agent // by number
	numbers map[performatives.Agent]uint32
	rows    []compactRow
	free    []uint32            // rows that were dropped
	all     runs                // indexes of rows, by place
	of      []runs              // by agent: the rows that name it
	apart   runs                // those whose id has another time than the opening, by id
	more    map[uint32][]uint32 // by row: the participants after the first four

	answered map[uint32][]performatives.Agent // by row, while it is INVITED
	owed     map[uint32]Owed                  // by row, where something is
	dues     map[uint32]*Dues                 // by row, where there is something
	modes    []string                         // by number
	counts   counts
}

// A compactRow is a session row in a table.
type compactRow struct {
	Place
	participants [4]uint32 // numbers, from 1; 0 is nobody
	entries      uint32
	page         uint32 // of the archive's index; 0 is none
	principals   uint16
	state        session.Phase
	mode         uint8 // its number
}

func newTable() *table {
	return &table{numbers: map[performatives.Agent]uint32{}, names: []performatives.Agent{""}, of: []runs{nil}, more: map[uint32][]uint32{}, answered: map[uint32][]performatives.Agent{}, owed: map[uint32]Owed{}, dues: map[uint32]*Dues{}, modes: []string{""}, counts: newCounts()}
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

// row is a session's row.
func (t *table) row(id performatives.SessionID) (row Row, ok bool) {
	r, ok := t.rowOf(compact(id))
	if !ok {
		return row, false
	}
	row = Row{State: t.rows[r].state, Entries: uint64(t.rows[r].entries), Principals: int(t.rows[r].principals), Answered: t.answered[r], Mode: t.modes[t.rows[r].mode], Owed: t.owed[r], Dues: t.dues[r]}
	if at := t.rows[r].Place; at.opened != timeIn(at.id) {
		row.Opened = at.opened
	}
	for _, n := range t.participants(r) {
		row.Participants = append(row.Participants, t.names[n])
	}
	return row, true
}

// part reports whether a session is there, and names an agent.
func (t *table) part(id performatives.SessionID, a performatives.Agent) (there, part bool) {
	r, there := t.rowOf(compact(id))
	n, known := t.numbers[a]
	if !there || !known {
		return there, false
	}
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
	r, ok := t.rowOf(c)
	if ok && row.Opened > 0 && row.Opened != t.rows[r].opened { // the row before was an older version's
		t.removeAll(r)
		t.rows[r].opened = row.Opened
		t.insertAll(r)
	}
	if ok {
		t.count(r, -1)
		before := slices.Clone(t.participants(r))
		t.fill(r, row)
		for _, n := range before {
			if !slices.Contains(t.participants(r), n) { // of a session that was erased
				t.of[n] = t.of[n].remove(t.byPlace(t.rows[r].Place))
			}
		}
	} else {
		r = t.add(c, row)
	}
	t.count(r, 1)
	t.insertAll(r)
}

// add makes a row that is not sorted in yet.
func (t *table) add(id [16]byte, row Row) uint32 {
	var r uint32
	if last := len(t.free) - 1; last >= 0 {
		r, t.free = t.free[last], t.free[:last]
		t.rows[r] = compactRow{}
	} else {
		t.rows = append(t.rows, compactRow{})
		r = uint32(len(t.rows) - 1) //nolint:gosec // 4 billion sessions need other streams first
	}
	t.rows[r].Place = Place{cmp.Or(row.Opened, timeIn(id)), id}
	t.fill(r, row)
	return r
}

func (t *table) fill(r uint32, row Row) {
	to := &t.rows[r]
	to.state, to.entries, to.participants = row.State, uint32(min(row.Entries, 1<<32-1)), [4]uint32{}
	to.principals = uint16(min(row.Principals, len(row.Participants), 1<<16-1)) //nolint:gosec // it fits
	delete(t.more, r)
	delete(t.answered, r)
	if len(row.Answered) > 0 {
		t.answered[r] = row.Answered
	}
	to.mode = t.modeNumber(row.Mode)
	delete(t.owed, r)
	if row.Owed != (Owed{}) {
		t.owed[r] = row.Owed
	}
	if delete(t.dues, r); row.Dues != nil {
		t.dues[r] = row.Dues
	}
	for i, a := range row.Participants {
		if n := t.number(a); i < len(to.participants) {
			to.participants[i] = n
		} else {
			t.more[r] = append(t.more[r], n)
		}
	}
}

// drop takes a session out.
func (t *table) drop(r uint32) {
	t.count(r, -1)
	t.removeAll(r)
	delete(t.more, r)
	delete(t.answered, r)
	delete(t.owed, r)
	delete(t.dues, r)
	t.free = append(t.free, r)
}

// page is the page of the archive's index that has a session, 0 for none.
func (t *table) page(id performatives.SessionID) uint64 {
	if r, ok := t.rowOf(compact(id)); ok {
		return uint64(t.rows[r].page)
	}
	return 0
}

func (t *table) setPage(id performatives.SessionID, page uint64) {
	if r, ok := t.rowOf(compact(id)); ok {
		t.rows[r].page = max(t.rows[r].page, uint32(page)) //nolint:gosec // there are fewer pages
	}
}

// sort sorts all rows that were added. A session that was added twice was moving
// to the archive, or its page was written again: the row on the newest page counts.
func (t *table) sort() {
	all := make([]uint32, len(t.rows))
	for r := range t.rows {
		all[r] = uint32(r)
	}
	slices.SortFunc(all, func(a, b uint32) int {
		return cmp.Or(bytes.Compare(t.rows[a].id[:], t.rows[b].id[:]), cmp.Compare(t.rows[b].page, t.rows[a].page))
	})
	all = slices.CompactFunc(all, func(a, b uint32) bool {
		same := t.rows[a].id == t.rows[b].id
		if same {
			page := max(t.rows[a].page, t.rows[b].page)
			t.rows[a].page, t.rows[b].page = page, page
		}
		return same
	})
	for _, r := range all {
		t.count(r, 1)
		t.insertAll(r)
	}
}

// merge adds the rows of a small table, which may be newer.
func (t *table) merge(few *table) {
	for r := range few.all.values() {
		id := few.rows[r].Session()
		row, _ := few.row(id)
		if old, ok := t.row(id); !ok || old.Entries <= row.Entries {
			t.put(id, row)
		}
		if page := few.rows[r].page; page > 0 {
			t.setPage(id, uint64(page))
		}
	}
}

// newest picks at most n sessions in a state ("" is any) from sorted rows, the
// newest first, before a place.
func (t *table) newest(sorted runs, state string, before Place, n int) (found []Place) {
	rows := sorted.values()
	if before != (Place{}) {
		run, at, _ := sorted.search(t.byPlace(before))
		rows = sorted.before(run, at)
	}
	for r := range rows {
		if len(found) == n {
			break
		}
		if r := &t.rows[r]; api.InState(r.state, state) {
			found = append(found, r.Place)
		}
	}
	return found
}

// beginning picks at most n sessions from sorted rows whose id begins with a prefix. Where the time of an id is that of the
// opening, they stand together; the others are found by their ids.
func (t *table) beginning(sorted runs, prefix string, n int) (found []Place) {
	first, last := compact(padded(prefix, '0')), compact(padded(prefix, 'f'))
	from, to := Place{timeIn(first), first}, Place{timeIn(last), last}
	for r := range sorted.between(t.byPlace(from), t.byPlace(to)) {
		if at := t.rows[r].Place; strings.HasPrefix(string(at.Session()), prefix) {
			found = append(found, at)
		}
		if len(found) == n {
			return found
		}
	}
	looked := 0
	for r := range t.apart.between(t.byID(first), t.byID(last)) {
		at := t.rows[r].Place
		if _, has := sorted.find(t.byPlace(at)); has && strings.HasPrefix(string(at.Session()), prefix) {
			found = append(found, at)
		}
		if looked++; len(found) == n || looked == mostApart {
			break
		}
	}
	return found
}

// mostApart are the ids of others, made to begin alike, that one search passes over.
const mostApart = 10_000

// padded is a prefix of an id with all further digits the same.
func padded(prefix string, digit rune) performatives.SessionID {
	const form = "00000000-0000-0000-0000-000000000000"
	return performatives.SessionID(prefix + strings.Map(func(r rune) rune {
		if r == '0' {
			return digit
		}
		return r
	}, form[min(len(prefix), len(form)):]))
}
