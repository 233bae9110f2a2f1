package sessionlist_test

import (
	"bytes"
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	gamma = performatives.Agent("agent://acme.com/gamma")
)

// openStore opens the store of a server of its own.
func openStore(t *testing.T) (*store.Store, *nats.Conn) {
	t.Helper()
	nc := natskit.StartServer(t).Connect()
	s, err := store.Open(t.Context(), store.Options{Conn: nc, Archive: true})
	natskit.Must(t, err)
	t.Cleanup(s.Close)
	return s, nc
}

func open(t *testing.T, o sessionlist.Options) *sessionlist.List {
	t.Helper()
	l, err := sessionlist.Open(t.Context(), o)
	natskit.Must(t, err)
	t.Cleanup(l.Close)
	return l
}

func row(s session.Phase, entries uint64, participants ...performatives.Agent) sessionlist.Row {
	return sessionlist.Row{State: s, Participants: participants, Entries: entries}
}

// What one list has written it pages through, and so does one that is opened later.
func TestList(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	first := open(t, sessionlist.Options{Store: s})
	var ids []performatives.SessionID // the newest last
	for range 4 {
		ids = append(ids, natskit.NewSession())
	}
	slices.Sort(ids)
	for i, r := range []sessionlist.Row{
		row(session.Introduced, 2, alpha, beta), row(session.Invited, 1, alpha, beta), row(session.Introduced, 2, beta, gamma), row(session.Invited, 1, beta),
	} {
		natskit.Must(t, first.Write(t.Context(), ids[i], r, false))
	}
	natskit.Must(t, first.Write(t.Context(), ids[0], row(session.Closed, 3, alpha, beta), false))
	first.Keep(ids[0], row(session.Introduced, 2, alpha, beta)) // late: made from fewer entries
	natskit.Must(t, first.Write(t.Context(), ids[1], row(session.Introduced, 2, alpha, beta), false))
	natskit.Must(t, first.Write(t.Context(), ids[1], row(session.Invited, 1, alpha, beta), false)) // late, by a peer that was slow
	stored, err := first.Stored(t.Context(), ids[1])
	natskit.Must(t, err)
	if stored == nil || stored.Entries != 2 {
		t.Errorf("the store has %+v, not the row with more entries", stored)
	}
	natskit.Must(t, first.Write(t.Context(), ids[1], row(session.Invited, 3, alpha, beta), false)) // a later row is stored

	for name, l := range map[string]*sessionlist.List{"the first": first, "a later": open(t, sessionlist.Options{Store: s})} {
		for _, c := range []struct {
			what          string
			of            sessionlist.Selection
			state, cursor string
			n             int
			want          []performatives.SessionID
		}{
			{"all", sessionlist.All(), "", "", 9, []performatives.SessionID{ids[3], ids[2], ids[1], ids[0]}},
			{"two before a cursor", sessionlist.All(), "", string(ids[3]), 2, []performatives.SessionID{ids[2], ids[1]}},
			{"alpha's", sessionlist.One(alpha), "", "", 9, []performatives.SessionID{ids[1], ids[0]}},
			{"an outsider's", sessionlist.One("agent://strange.org/eve"), "", "", 9, nil},
			{"acme's", sessionlist.Organisation("acme.com"), "", "", 9, []performatives.SessionID{ids[2], ids[1], ids[0]}},
			{"closed", sessionlist.All(), "CLOSED", "", 9, []performatives.SessionID{ids[0]}},
			{"introduced", sessionlist.One(beta), "INTRODUCED", "", 9, []performatives.SessionID{ids[2]}},
		} {
			before, err := sessionlist.ParseCursor(c.cursor)
			natskit.Must(t, err)
			page, err := l.Page(t.Context(), c.of, c.state, before, c.n)
			var got []performatives.SessionID
			for _, at := range page {
				got = append(got, at.Session())
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s list: %s: %v, %v, want %v", name, c.what, got, err, c.want)
			}
		}
		if !l.Names(t.Context(), ids[0], beta) || l.Names(t.Context(), ids[0], gamma) {
			t.Errorf("%s list: the closed session does not name alpha and beta alone", name)
		}
		if got, err := l.Stored(t.Context(), ids[0]); err != nil || got == nil || got.State != session.Closed || got.Entries != 3 {
			t.Errorf("%s list: the closed session's row is stored as %+v, %v", name, got, err)
		}
	}
}

// An inviter has so many sessions open and no more, counted from the rows.
func TestReserve(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	l := open(t, sessionlist.Options{Store: s})
	reserve := func(l *sessionlist.List, id performatives.SessionID, want bool) func() {
		t.Helper()
		release, used, ok := l.Reserve(id, row(session.Invited, 1, alpha, beta), sessionlist.Quota{Sessions: 2, Invitations: 9})
		if ok != want || !ok && used.Sessions != 2 {
			t.Errorf("room for one more: %t with %+v, want %t", ok, used, want)
		}
		return release
	}
	id, other := natskit.NewSession(), natskit.NewSession()
	release := reserve(l, id, true)
	l.Keep(id, row(session.Invited, 1, alpha, beta))
	released := reserve(l, other, true) // one that is there counts once, released or not
	reserve(l, natskit.NewSession(), false)
	release()
	reserve(l, natskit.NewSession(), false)
	released()
	released()
	reserve(l, other, true)
	reserve(l, natskit.NewSession(), false)
	natskit.Must(t, l.Write(t.Context(), id, row(session.Invited, 1, alpha, beta), false))

	later := open(t, sessionlist.Options{Store: s})
	reserve(later, other, true) // what others reserve it does not know
	reserve(later, natskit.NewSession(), false)
	natskit.Must(t, later.Write(t.Context(), id, row(session.Closed, 2, alpha, beta), false))
	reserve(later, natskit.NewSession(), true)
}

// An organisation has so many invitations to another one unanswered and no more, whoever of it
// invites, counted from the rows. What it asks its own, and what was answered, does not count.
func TestReserveInvitations(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	l := open(t, sessionlist.Options{Store: s})
	quota := sessionlist.Quota{Sessions: 99, Invitations: 2}
	other := performatives.Agent("agent://other.org/delta")
	var release func()
	opening := natskit.NewSession()
	reserve := func(l *sessionlist.List, want int, participants ...performatives.Agent) {
		t.Helper()
		leave, used, ok := l.Reserve(opening, row(session.Invited, 1, participants...), quota)
		opening = natskit.NewSession()
		if release = leave; used.Invitations != want || ok != (want < 2) {
			t.Errorf("%v: %t with %+v, want %d unanswered", participants, ok, used, want)
		}
	}
	reserve(l, 0, alpha, other, beta, "agent://widgets.co/second") // once for a session and an organisation
	both := row(session.Invited, 1, alpha, other, beta)
	id := natskit.NewSession()
	natskit.Must(t, l.Write(t.Context(), id, both, false))
	release()
	reserve(l, 1, gamma, beta)
	reserve(l, 2, alpha, other, beta)
	reserve(l, 0, alpha, gamma)
	reserve(l, 0, beta, alpha) // the other way
	both.Answered, both.Entries = []performatives.Agent{beta}, 2
	natskit.Must(t, l.Write(t.Context(), id, both, false))
	reserve(l, 1, alpha, beta)

	later := open(t, sessionlist.Options{Store: s})
	reserve(later, 0, alpha, beta)
	reserve(later, 1, gamma, other)
	reserve(later, 2, gamma, other)
	natskit.Must(t, later.Write(t.Context(), id, row(session.Introduced, 3, alpha, other, beta), false))
	reserve(later, 1, gamma, other)
}

// An index is one page of archived sessions, which cannot be followed at once.
type index struct {
	rows    []sessionlist.Listed
	faults  int
	expires time.Time
}

func (x *index) Follow(_ context.Context, _ *background.Group, saw func(sessionlist.Page, bool)) (<-chan struct{}, error) {
	if x.faults--; x.faults >= 0 {
		return nil, nats.ErrTimeout
	}
	saw(sessionlist.Page{Number: 7, Rows: x.rows, Expires: x.expires}, true)
	caughtUp := make(chan struct{})
	close(caughtUp)
	return caughtUp, nil
}

func (x *index) Row(_ context.Context, page uint64, id performatives.SessionID) (*sessionlist.Row, error) {
	for _, r := range x.rows {
		if r.Session == id && page == 7 {
			return &r.Row, nil
		}
	}
	return nil, nil //nolint:nilnil // as sessionlist.Options has it
}

// The rows of the archive's index are listed beside the others, the newer word counts,
// and a failed attempt to load them leaves no consumer.
func TestArchiveIndex(t *testing.T) {
	t.Parallel()
	s, nc := openStore(t)
	both, moved := natskit.NewSession(), natskit.NewSession()
	closed := row(session.Closed, 3, alpha, beta)
	writer := open(t, sessionlist.Options{Store: s})
	natskit.Must(t, writer.Write(t.Context(), both, closed, false)) // on its way to the archive
	writer.Close()
	archived := &index{rows: []sessionlist.Listed{{Session: both, Row: closed}, {Session: moved, Row: closed}}, faults: 1}
	l := open(t, sessionlist.Options{Store: s, FollowArchive: archived.Follow, ArchivedRow: archived.Row})
	if got, err := l.Page(t.Context(), sessionlist.All(), "CLOSED", sessionlist.Place{}, 9); err != nil || len(got) != 2 {
		t.Errorf("closed: %v, %v, want %s and %s", got, err, both, moved)
	}
	natskit.Must(t, l.Remove(t.Context(), both))
	for _, id := range []performatives.SessionID{both, moved} {
		if got, err := l.Stored(t.Context(), id); err != nil || got == nil || l.PageOf(id) != 7 {
			t.Errorf("%s is stored as %+v on page %d, %v", id, got, l.PageOf(id), err)
		}
	}
	if n := consumers(t, nc); n != 2 {
		t.Errorf("the list has %d consumers, want one of open sessions and one of ended ones", n)
	}
}

// Sessions whose page has expired are not listed any more, and whoever asked is told.
func TestArchiveExpires(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	gone, stays := natskit.NewSession(), natskit.NewSession()
	closed := row(session.Closed, 3, alpha, beta)
	writer := open(t, sessionlist.Options{Store: s})
	natskit.Must(t, writer.Write(t.Context(), stays, closed, false))
	archived := &index{rows: []sessionlist.Listed{{Session: gone, Row: closed}}, expires: time.Now()}
	expired := make(chan performatives.SessionID, 1)
	l := open(t, sessionlist.Options{
		Store: s, FollowArchive: archived.Follow, ArchivedRow: archived.Row, Expired: func(id performatives.SessionID) { expired <- id },
	})
	if id := <-expired; id != gone {
		t.Errorf("%s has expired, want %s", id, gone)
	}
	for _, a := range []performatives.Agent{alpha, beta} {
		if got, err := l.Page(t.Context(), sessionlist.One(a), "", sessionlist.Place{}, 9); err != nil || len(got) != 1 || got[0].Session() != stays {
			t.Errorf("%s has %v, %v, want %s", a, got, err, stays)
		}
	}
	if _, there := l.Row(gone); there || l.PageOf(gone) != 0 {
		t.Error("its row is in memory")
	}
	natskit.Must(t, l.Write(t.Context(), gone, row(session.Invited, 1, alpha, beta), true)) // such as one that is opened anew
	if got, err := l.Page(t.Context(), sessionlist.All(), "", sessionlist.Place{}, 9); err != nil || len(got) != 2 {
		t.Errorf("all are %v, %v", got, err)
	}
}

// consumers counts those of the list's stream.
func consumers(t *testing.T, nc *nats.Conn) int {
	t.Helper()
	js, err := jetstream.New(nc)
	natskit.Must(t, err)
	s, err := js.Stream(t.Context(), api.IndexStream)
	natskit.Must(t, err)
	return s.CachedInfo().State.Consumers
}

// goroutines counts those of lists and of the feeds that they follow.
func goroutines(t *testing.T) (n int) {
	t.Helper()
	var all bytes.Buffer
	natskit.Must(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "parley/broker/sessionlist.(*List)") || strings.Contains(stack, "parley/store.(*feed)") {
			n++
		}
	}
	return n
}

// After Close, and after an Open that failed, there is neither goroutine nor consumer.
func TestClose(t *testing.T) { //nolint:paralleltest // it counts goroutines
	s, nc := openStore(t)
	before := goroutines(t)
	for name, end := range map[string]func() error{
		"Close": func() error {
			l, err := sessionlist.Open(t.Context(), sessionlist.Options{Store: s})
			natskit.Must(t, err)
			l.Close()
			return nil
		},
		"Close once loaded": func() error {
			l := open(t, sessionlist.Options{Store: s})
			<-l.Loaded()
			if goroutines(t) == before || consumers(t, nc) != 2 {
				t.Error("an open list has no goroutine, or not two consumers")
			}
			l.Close()
			l.Close()
			return nil
		},
		"a failed Open": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := sessionlist.Open(ctx, sessionlist.Options{Store: s}); !errors.Is(err, context.Canceled) {
				return errors.New("it did not fail")
			}
			return nil
		},
	} {
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := goroutines(t); n != before {
			t.Errorf("%s leaves %d goroutines", name, n-before)
		}
		if n := consumers(t, nc); n != 0 {
			t.Errorf("%s leaves %d consumers", name, n)
		}
	}
}

// Only a list that has all sessions, and alone writes them, knows which are new.
func TestIsNew(t *testing.T) {
	t.Parallel()
	s, nc := openStore(t)
	alone, peer := open(t, sessionlist.Options{Store: s, Alone: true}), open(t, sessionlist.Options{Store: s})
	<-alone.Loaded()
	<-peer.Loaded()
	listed, other := natskit.NewSession(), natskit.NewSession()
	alone.Keep(listed, row(session.Invited, 1, alpha, beta))
	for i, is := range []bool{!alone.IsNew(listed), alone.IsNew(other), !peer.IsNew(other)} {
		if !is {
			t.Errorf("case %d", i)
		}
	}
	natskit.Must(t, nc.Publish(api.Index(natskit.NewSession()), []byte("{")))
	natskit.Eventually(t, "the list knows that it lacks a session", func() bool { return !alone.IsNew(other) })
}
