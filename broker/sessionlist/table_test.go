package sessionlist

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// apart is when a session of the test was opened, 0 where its id says so.
func apart(id performatives.SessionID) int64 {
	if n := int64(id[len(id)-1]); n%3 == 0 {
		return time.Date(2026, 11, 1, 0, int(n), int(id[len(id)-2]), 0, time.UTC).UnixMilli()
	}
	return 0
}

func placeOf(id performatives.SessionID) Place {
	return Place{cmp.Or(apart(id), timeIn(compact(id))), compact(id)}
}

func newestFirst(a, b performatives.SessionID) int { return placeOf(b).Compare(placeOf(a)) }

func idsOf(places []Place) (ids []performatives.SessionID) {
	for _, at := range places {
		ids = append(ids, at.Session())
	}
	return ids
}

// Whatever is put, replaced and merged, a table says what a plain map says.
func TestTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	agent := func() performatives.Agent {
		return performatives.Agent(fmt.Sprintf("agent://acme.com/%d", r.IntN(7)))
	}
	some := func(at performatives.SessionID, entries uint64) Row {
		l := Row{Opened: apart(at), Principals: r.IntN(2), State: []session.Phase{session.Invited, session.Introduced, session.Closed}[r.IntN(3)], Entries: entries}
		l.Mode, l.Owed = []string{"", "asp/1", "binding/1"}[r.IntN(3)], Owed{Due: r.IntN(2), Overdue: r.IntN(3), Disputed: r.IntN(2)}
		for range 1 + r.IntN(6) {
			if a := agent(); !slices.Contains(l.Participants, a) {
				l.Participants = append(l.Participants, a)
			}
		}
		return l
	}
	id := func() performatives.SessionID {
		return performatives.SessionID(fmt.Sprintf("019478a3-0001-7def-8a12-%012x", r.IntN(400)))
	}
	plain := map[performatives.SessionID]Row{}
	past, now := newTable(), newTable()
	for range 200 {
		at := id()
		l := some(at, 1)
		if _, there := plain[at]; !there { // the stream has one message of each
			plain[at] = l
			past.add(compact(at), l)
			past.add(compact(at), l) // it was moving to the archive
		}
	}
	past.sort()
	fresh := map[performatives.SessionID]Row{}
	for range 100 {
		at := id()
		l := some(at, 2)
		l.Participants = slices.Clone(plain[at].Participants)
		if a := agent(); !slices.Contains(l.Participants, a) {
			l.Participants = append(l.Participants, a)
		}
		if _, again := fresh[at]; again {
			continue
		}
		now.put(at, l)
		fresh[at] = l
	}
	past.merge(now)
	maps.Copy(plain, fresh)
	for range 300 {
		at := id()
		l := some(at, 3)
		l.Participants = slices.Clone(plain[at].Participants) // participants are only added
		if a := agent(); !slices.Contains(l.Participants, a) {
			l.Participants = append(l.Participants, a)
		}
		past.put(at, l)
		plain[at] = l
	}

	var ids []performatives.SessionID
	kinds, owed := map[Kind]int{}, Owed{}
	for at, want := range plain {
		ids = append(ids, at)
		kinds[Kind{want.State, want.Mode}]++
		owed.Due, owed.Overdue, owed.Disputed = owed.Due+want.Owed.Due, owed.Overdue+want.Owed.Overdue, owed.Disputed+want.Owed.Disputed
		got, there := past.row(at)
		if diff := gocmp.Diff(want, got); !there || diff != "" {
			t.Errorf("%s: %s", at, diff)
		}
	}
	gotKinds, gotOwed := (&List{table: past}).Counts()
	if diff := gocmp.Diff(kinds, gotKinds); diff != "" || gotOwed != owed {
		t.Errorf("counts: %+v, want %+v, %s", gotOwed, owed, diff)
	}
	slices.SortFunc(ids, newestFirst)
	for _, sorted := range append([]runs{past.all}, past.of...) {
		checkRuns(t, past, sorted)
	}
	if got := idsOf(past.newest(past.all, "", Place{}, len(ids)+1)); !slices.Equal(got, ids) {
		t.Errorf("all: %v, want %v", got, ids)
	}
	half := ids[len(ids)/2]
	for n := range 7 {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/%d", n))
		var want []performatives.SessionID
		for _, at := range ids {
			if placeOf(at).Compare(placeOf(half)) < 0 && plain[at].State == session.Introduced && slices.Contains(plain[at].Participants, a) {
				want = append(want, at)
			}
		}
		want = want[:min(5, len(want))]
		if got := idsOf(past.newest(One(a)(past)[0], "INTRODUCED", placeOf(half), 5)); !slices.Equal(got, want) {
			t.Errorf("of %s: %v, want %v", a, got, want)
		}
	}
}

// An insertion moves no more than one run, also of sessions with old ids, which sort before
// all others. Runs stay so full that there are few of them.
func TestOldSessions(t *testing.T) {
	t.Parallel()
	const sessions = 40_000
	r := rand.New(rand.NewPCG(3, 4))
	for name, id := range map[string]func(n int) int{
		"newer and newer": func(n int) int { return n },
		"older and older": func(n int) int { return sessions - n },
		"random":          func(int) int { return r.IntN(1 << 40) },
	} {
		table := newTable()
		var want []performatives.SessionID
		for n := range sessions {
			at := performatives.SessionID(fmt.Sprintf("019478a3-0001-7def-8a12-%012x", id(n)))
			want = append(want, at)
			table.put(at, Row{State: session.Invited, Entries: 1, Participants: []performatives.Agent{"agent://acme.com/a"}})
		}
		slices.SortFunc(want, func(a, b performatives.SessionID) int { return strings.Compare(string(b), string(a)) })
		want = slices.Compact(want)
		for _, sorted := range []runs{table.all, table.of[1]} {
			checkRuns(t, table, sorted)
			if got := idsOf(table.newest(sorted, "", Place{}, sessions)); !slices.Equal(got, want) {
				t.Errorf("%s: %d sessions are listed, in another order than %d", name, len(got), len(want))
			}
			if most := 3 * len(want) / maxRun; len(sorted) > most {
				t.Errorf("%s: %d runs, want at most %d", name, len(sorted), most)
			}
		}
		if got := idsOf(table.newest(table.all, "", Place{timeIn(compact(want[600])), compact(want[600])}, 700)); !slices.Equal(got, want[601:1301]) {
			t.Errorf("%s: another page", name)
		}
	}
}

func checkRuns(t *testing.T, table *table, sorted runs) {
	t.Helper()
	var last Place
	for n, run := range sorted {
		if len(run) == 0 || len(run) > maxRun {
			t.Errorf("run %d has %d rows", n, len(run))
		}
		for _, r := range run {
			if at := table.rows[r].Place; last.Compare(at) >= 0 {
				t.Errorf("run %d: %v after %v", n, at, last)
			} else {
				last = at
			}
		}
	}
}

// A cursor is a place again; nothing else is one.
func TestCursor(t *testing.T) {
	t.Parallel()
	const id = "f47ac10b-58cc-7372-8567-0e02b2c3d479"
	for _, cursor := range []string{"", id, "019478a30001-" + id} {
		if at, err := ParseCursor(cursor); err != nil || at.Cursor() != cursor {
			t.Errorf("%q is %v, %v", cursor, at, err)
		}
	}
	for _, cursor := range []string{"1", "-", id + ".", id[:35], "f47ac10b58cc737285670e02b2c3d479", "-19478a30001-" + id, "019478a30001." + id, "019478a3000g-" + id, strings.Repeat("-", 36), strings.Repeat("0", 36), strings.Repeat("é", 18)} {
		if at, err := ParseCursor(cursor); err == nil {
			t.Errorf("%q is %v", cursor, at)
		}
	}
	first := Place{1, [16]byte{14: 1, 15: 255}}
	if next := (Place{1, [16]byte{14: 2}}); first.Including() != next {
		t.Errorf("%v, want %v", first.Including(), next)
	}
}

// Ids are found by how they begin, wherever their sessions stand, among those of who asks.
func TestBeginning(t *testing.T) {
	t.Parallel()
	table := newTable()
	const hashed, honest, later = "f47ac10b-58cc-7372-8567-0e02b2c3d479", "019478a3-0001-7def-8a12-000000000001", "019478a3-0002-7def-8a12-000000000001"
	for n, id := range []performatives.SessionID{hashed, "f47ac10c-58cc-7372-8567-0e02b2c3d479", honest, later, "ffffffff-ffff-7fff-bfff-ffffffffffff"} {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/%d", n%3))
		table.put(id, Row{Opened: OpenedApart(id, time.Date(2025, 1, 18, 0, 0, n, 0, time.UTC)), Entries: 1, Participants: []performatives.Agent{a}})
	}
	for prefix, want := range map[string][]performatives.SessionID{
		"f47ac10b":           {hashed},
		"f47ac10b-58cc-7":    {hashed},
		hashed:               {hashed},
		"f47ac10b-58cd":      nil,
		"f47ac10b58cc":       nil,
		"019478a3":           {later, honest},
		"019478a3-0001":      {honest},
		"019478a3-0001-7def": {honest},
		honest:               {honest},
		"zzzzzzzz":           nil,
		honest + "0":         nil,
		"ffffffff":           {"ffffffff-ffff-7fff-bfff-ffffffffffff"},
	} {
		if got := idsOf(newestOf(table.beginning(table.all, prefix, 9), 9)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", prefix, got, want)
		}
	}
	if got := table.beginning(table.of[table.numbers["agent://acme.com/1"]], "f47ac10b", 9); len(got) > 0 {
		t.Errorf("others' %v", got)
	}
}

// The row of an older version says nothing of the opening; a later one moves the session to where it belongs.
func TestOpenedLater(t *testing.T) {
	t.Parallel()
	const hashed, honest = "f47ac10b-58cc-7372-8567-0e02b2c3d479", "019478a3-0001-7def-8a12-000000000001"
	table, a := newTable(), []performatives.Agent{"agent://acme.com/a"}
	table.put(honest, Row{Entries: 1, Participants: a})
	for _, c := range []struct {
		opened int64
		want   []performatives.SessionID
	}{{0, []performatives.SessionID{hashed, honest}}, {1, []performatives.SessionID{honest, hashed}}, {0, []performatives.SessionID{honest, hashed}}} {
		table.put(hashed, Row{Opened: c.opened, Entries: 1, Participants: a})
		for _, sorted := range []runs{table.all, table.of[1]} {
			checkRuns(t, table, sorted)
			if got := idsOf(table.newest(sorted, "", Place{}, 9)); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		}
		if _, ok := table.row(hashed); !ok {
			t.Error("it is not found by its id")
		}
	}
}
