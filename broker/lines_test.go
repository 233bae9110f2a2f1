package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Whatever is put, replaced and absorbed, lines say what a plain map says.
func TestLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	agent := func() performatives.Agent {
		return performatives.Agent(fmt.Sprintf("agent://acme.com/%d", r.IntN(7)))
	}
	some := func(entries uint64) line {
		l := line{State: []session.Phase{session.Invited, session.Introduced, session.Closed}[r.IntN(3)], Entries: entries}
		for range 1 + r.IntN(6) {
			if a := agent(); !slices.Contains(l.Parties, a) {
				l.Parties = append(l.Parties, a)
			}
		}
		return l
	}
	id := func() performatives.SessionID {
		return performatives.SessionID(fmt.Sprintf("019478a3-0001-7def-8a12-%012x", r.IntN(400)))
	}
	plain := map[performatives.SessionID]line{}
	past, now := newLines(), newLines()
	for range 200 {
		at, l := id(), some(1)
		if _, there := plain[at]; !there { // the stream has one message of each
			plain[at] = l
			past.add(compact(at), l)
		}
	}
	past.sort()
	fresh := map[performatives.SessionID]line{}
	for range 100 {
		at, l := id(), some(2)
		l.Parties = slices.Clone(plain[at].Parties)
		if a := agent(); !slices.Contains(l.Parties, a) {
			l.Parties = append(l.Parties, a)
		}
		if _, again := fresh[at]; again {
			continue
		}
		now.put(at, l)
		fresh[at] = l
	}
	past.absorb(now)
	maps.Copy(plain, fresh)
	for range 300 {
		at, l := id(), some(3)
		l.Parties = slices.Clone(plain[at].Parties) // a roll only grows
		if a := agent(); !slices.Contains(l.Parties, a) {
			l.Parties = append(l.Parties, a)
		}
		past.put(at, l)
		plain[at] = l
	}

	var ids []performatives.SessionID
	for at, want := range plain {
		ids = append(ids, at)
		got, there := past.line(at)
		if diff := cmp.Diff(want, got); !there || diff != "" {
			t.Errorf("%s: %s", at, diff)
		}
	}
	slices.SortFunc(ids, func(a, b performatives.SessionID) int { return strings.Compare(string(b), string(a)) })
	if got := past.newest(past.all, "", "", len(ids)+1); !slices.Equal(got, ids) {
		t.Errorf("all: %v, want %v", got, ids)
	}
	half := ids[len(ids)/2]
	for n := range 7 {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/%d", n))
		var want []performatives.SessionID
		for _, at := range ids {
			if at < half && plain[at].State == session.Introduced && slices.Contains(plain[at].Parties, a) {
				want = append(want, at)
			}
		}
		want = want[:min(5, len(want))]
		if got := past.newest(past.ofOne(a)[0], "INTRODUCED", string(half), 5); !slices.Equal(got, want) {
			t.Errorf("of %s: %v, want %v", a, got, want)
		}
	}
}

// What a session that is over costs in memory, and a million of them at the start.
func BenchmarkLines(b *testing.B) {
	agents := make([]performatives.Agent, 1000)
	for n := range agents {
		agents[n] = performatives.Agent(fmt.Sprintf("agent://acme.com/%d", n))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	t := newLines()
	for n := range b.N {
		id := performatives.SessionID(fmt.Sprintf("019478a3-0001-7def-8a12-%012x", n*7919%b.N))
		t.add(compact(id), line{State: session.Closed, Parties: []performatives.Agent{agents[n%1000], agents[(n+1)%1000]}, Entries: 3})
	}
	t.sort()
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/session")
	runtime.KeepAlive(t)
}
