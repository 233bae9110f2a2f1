package sessionlist

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Whatever is put, replaced and merged, a table says what a plain map says.
func TestTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	agent := func() performatives.Agent {
		return performatives.Agent(fmt.Sprintf("agent://acme.com/%d", r.IntN(7)))
	}
	some := func(entries uint64) Row {
		l := Row{Principals: r.IntN(2), State: []session.Phase{session.Invited, session.Introduced, session.Closed}[r.IntN(3)], Entries: entries}
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
		at, l := id(), some(1)
		if _, there := plain[at]; !there { // the stream has one message of each
			plain[at] = l
			past.add(compact(at), l)
			past.add(compact(at), l) // it was moving to the archive
		}
	}
	past.sort()
	fresh := map[performatives.SessionID]Row{}
	for range 100 {
		at, l := id(), some(2)
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
		at, l := id(), some(3)
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
		if diff := cmp.Diff(want, got); !there || diff != "" {
			t.Errorf("%s: %s", at, diff)
		}
	}
	gotKinds, gotOwed := (&List{table: past}).Counts()
	if diff := cmp.Diff(kinds, gotKinds); diff != "" || gotOwed != owed {
		t.Errorf("counts: %+v, want %+v, %s", gotOwed, owed, diff)
	}
	slices.SortFunc(ids, func(a, b performatives.SessionID) int { return strings.Compare(string(b), string(a)) })
	for _, sorted := range append([]runs{past.all}, past.of...) {
		checkRuns(t, past, sorted)
	}
	if got := past.newest(past.all, "", "", len(ids)+1); !slices.Equal(got, ids) {
		t.Errorf("all: %v, want %v", got, ids)
	}
	half := ids[len(ids)/2]
	for n := range 7 {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/%d", n))
		var want []performatives.SessionID
		for _, at := range ids {
			if at < half && plain[at].State == session.Introduced && slices.Contains(plain[at].Participants, a) {
				want = append(want, at)
			}
		}
		want = want[:min(5, len(want))]
		if got := past.newest(One(a)(past)[0], "INTRODUCED", string(half), 5); !slices.Equal(got, want) {
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
			if got := table.newest(sorted, "", "", sessions); !slices.Equal(got, want) {
				t.Errorf("%s: %d sessions are listed, in another order than %d", name, len(got), len(want))
			}
			if most := 3 * len(want) / maxRun; len(sorted) > most {
				t.Errorf("%s: %d runs, want at most %d", name, len(sorted), most)
			}
		}
		if got := table.newest(table.all, "", string(want[600]), 700); !slices.Equal(got, want[601:1301]) {
			t.Errorf("%s: another page", name)
		}
	}
}

func checkRuns(t *testing.T, table *table, sorted runs) {
	t.Helper()
	var last [16]byte
	for n, run := range sorted {
		if len(run) == 0 || len(run) > maxRun {
			t.Errorf("run %d has %d rows", n, len(run))
		}
		for _, r := range run {
			if id := table.rows[r].id; bytes.Compare(last[:], id[:]) >= 0 {
				t.Errorf("run %d: %x after %x", n, id, last)
			} else {
				last = id
			}
		}
	}
}
