package broker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A shelf is a broker with an archive, and a look at its streams.
type shelf struct {
	*fault.Witness
	b  *testkit.Broker
	js jetstream.JetStream
}

func newShelf(t *testing.T, a archive.Policy, change ...func(*testkit.Options)) *shelf {
	t.Helper()
	unlimited := limits.Limits{PrincipalBytes: -1, OrganisationBytes: -1}
	a.Retry, a.Takeover = 100*time.Millisecond, time.Second
	o := testkit.Options{Dev: true, Sync: time.Second, Archive: a, Limits: unlimited}
	for _, c := range change {
		c(&o)
	}
	b := testkit.StartBroker(t, o)
	w := &shelf{Witness: fault.NewWitness(t, b.URL), b: b}
	login, err := nats.NkeyOptionFromSeed(b.Data + "/" + server.BrokerLogin)
	testkit.Must(t, err)
	if w.js, err = jetstream.New(b.Plain(login, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))); err != nil {
		t.Fatal(err)
	}
	return w
}

// deals are sessions of which the first n are over.
func (w *shelf) deals(over, open int) (all []*fault.Session) {
	for n := range over + open {
		s := w.Open(alpha, beta)
		s.Say(beta, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("words ", n*1000+1)))
		if n < over {
			s.Say(alpha, "CLOSE", "{}")
		}
		all = append(all, s)
	}
	return all
}

// stream is one as it is now. What is asked while the connection comes back after a restart may be lost.
func (w *shelf) stream(name string) (found jetstream.Stream) {
	w.Helper()
	testkit.Eventually(w, name+" is found", func() bool {
		one, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		s, err := w.js.Stream(one, name)
		found = s
		return err == nil
	})
	return found
}

// holds waits until a stream has messages of so many sessions, and of no others.
func (w *shelf) holds(stream string, sessions int) {
	w.Helper()
	testkit.Eventually(w, fmt.Sprintf("%s holds %d sessions", stream, sessions), func() bool {
		return w.stream(stream).CachedInfo().State.NumSubjects == uint64(sessions) //nolint:gosec // a count
	})
}

// What is in the archive is answered like anything else: acts again, acts late, lists,
// transcripts; before and after a restart and a crash.
func TestArchive(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond})
	long := w.Open(alpha, beta)
	for range 12 { // more than one message of the archive takes
		long.Say(alpha, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 100_000)))
	}
	long.Say(beta, "CLOSE", "{}")
	all := append(w.deals(8, 3), long)
	w.holds(api.SessionsStream, 3)
	w.holds(api.ArchiveStream, 9)
	for _, restart := range []func(){func() {}, func() { w.b.Down(); w.b.Up() }, func() { w.b.Crash(); w.b.Up() }} {
		restart()
		for _, s := range all {
			s.Again()
			s.Check(alpha, beta)
		}
		if code := long.Code(alpha, "OBSERVE", `{"subject":"late"}`); code != "wrong_state" {
			t.Errorf("a late act: %s", code)
		}
		if code := long.Code(alpha, "PROPOSE", `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":["`+string(beta)+`"]}}`); code == "" {
			t.Error("a session is opened in the place of one that was archived")
		}
		if code := long.Code("agent://strange.org/eve", "OBSERVE", `{"subject":"late"}`); code != "unknown_session" {
			t.Errorf("an outsider: %s", code)
		}
		var found api.Sessions
		w.Call(api.SessionList.Name, `{"state":"CLOSED"}`, &found)
		if len(found.Sessions) != 9 {
			t.Errorf("%d sessions are listed as closed", len(found.Sessions))
		}
		var audited api.AuditedSessions
		var ids []performatives.SessionID
		for request := "{}"; ; request = fmt.Sprintf(`{"cursor":%d}`, *audited.Next) {
			audited = api.AuditedSessions{}
			w.Call(api.AuditSessions.Name, request, &audited)
			ids = append(ids, audited.Sessions...)
			if audited.Next == nil {
				break
			}
		}
		if slices.Sort(ids); len(ids) != 12 || len(slices.Compact(ids)) != 12 {
			t.Errorf("%d sessions can be audited, want 12", len(ids))
		}
	}
}

// Files of the transcripts' stream empty and go while acts are fsynced into it.
func TestArchiveFsynced(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond}, func(o *testkit.Options) { o.Sync = 0 })
	for range max(1, testkit.Amount(4)) {
		all := w.deals(6, 0)
		w.holds(api.SessionsStream, 0)
		all = append(all, w.deals(0, 1)...)
		big := w.Open(alpha, beta)
		for range 60 { // some megabytes
			big.Say(alpha, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 150_000)))
		}
		for _, s := range append(all, big) {
			s.Again()
		}
		for _, s := range []*fault.Session{all[len(all)-1], big} {
			s.Say(alpha, "CLOSE", "{}")
		}
	}
	if err := w.b.Broker.Command.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// However far a session has come on its way to the archive when the broker goes, it is read
// as it was, and gets there.
func TestArchiveCrashes(t *testing.T) {
	t.Parallel()
	for _, point := range some(archive.Failpoints()) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newShelf(t, archive.Policy{After: 200 * time.Millisecond})
			stopped := w.b.Broker.Command.StopAt(point)
			all := w.deals(4, 1) // the first may wait for the point
			<-stopped
			w.b.Crash()
			w.b.Up()
			for _, s := range all {
				s.Again()
				s.Check(alpha, beta)
			}
			w.holds(api.SessionsStream, 1)
			w.holds(api.ArchiveStream, 4)
			all[0].Check(alpha, beta)
		})
	}
}

// What has been kept long enough is gone from archive and list; the rest stays.
func TestArchiveForgets(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond, Failed: time.Second})
	closed := w.Open(alpha, beta)
	closed.Say(alpha, "CLOSE", "{}")
	failed := w.Open(alpha, beta)
	failed.Say(alpha, "CLOSE", `{"outcome":"failed"}`)
	rejected := w.Invite(alpha, beta, time.Minute)
	rejected.Say(beta, "REJECT", `{"referenceId":"inv","code":"unspecified","reason":"no","retryable":false}`)
	w.holds(api.SessionsStream, 0)
	w.holds(api.ArchiveStream, 2)
	closed.Check(alpha, beta)
	anew := `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":["` + string(beta) + `"]}}`
	forgets := func() {
		t.Helper()
		testkit.Eventually(t, "a session that is not kept any more is unknown, and not listed", func() bool {
			var found api.Sessions
			w.Call(api.SessionList.Name, `{}`, &found)
			return rejected.Code(alpha, "OBSERVE", `{"subject":"late"}`) == "unknown_session" && len(found.Sessions) == 2
		})
	}
	forgets()
	w.b.Down()
	w.b.Up()
	forgets()
	for _, deletes := range []string{"", "no longer "} {
		if code := rejected.Code(alpha, "PROPOSE", anew); code != "unknown_session" { // or the log, which has its end, would have no other
			t.Errorf("by a broker that %sdeletes, a session under the id of one that was forgotten: %s", deletes, code)
		}
		w.b.Down()
		w.b.Configure(func(o *testkit.Options) { o.Archive.Failed = 0 })
		w.b.Up()
	}
}

// What is due waits for a burst, unless there is very much of it.
func TestArchiveInBursts(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond, Every: 10_000 * time.Hour, AtOnce: 6})
	all := w.deals(4, 0)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	going := w.Open(alpha, beta)
	for n := range 300 { // they are due after the first, and wait
		going.Say(alpha, "OBSERVE", fmt.Sprintf(`{"subject":"act %d"}`, n))
	}
	begun := time.Now()
	all = append(all, w.deals(8, 1)...)
	w.holds(api.SessionsStream, 2)
	w.holds(api.ArchiveStream, 12)
	s, err := w.js.Stream(ctx, api.ArchiveStream)
	testkit.Must(t, err)
	if first := s.CachedInfo().State.FirstTime; first.Before(begun) {
		t.Errorf("the first session moved %s before there was enough for a burst", begun.Sub(first))
	}
	for _, s := range all {
		s.Check(alpha, beta)
	}
}

// The row of an archived session is no longer in the session list's stream, and the list has
// the session all the same, once, whatever became of the broker that moved it.
func TestArchiveIndex(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond})
	w.deals(5, 2)
	w.holds(api.ArchiveStream, 5)
	w.holds(api.IndexStream, 2)
	for _, restart := range []func(){func() {}, func() { w.b.Down(); w.b.Up() }, func() { w.b.Crash(); w.b.Up() }} {
		restart()
		var found api.Sessions
		if w.Call(api.SessionList.Name, `{"state":"CLOSED"}`, &found); len(found.Sessions) != 5 {
			t.Errorf("%d sessions are listed as closed, want 5", len(found.Sessions))
		}
		for _, s := range found.Sessions {
			var held api.Held
			if w.Call(api.AuditSession.Name, fmt.Sprintf(`{"sessionId":%q}`, s.Session), &held); held.Index == nil || held.Index.State != "CLOSED" || len(held.Index.Participants) != 2 {
				t.Errorf("the row of %s: %+v", s.Session, held.Index)
			}
		}
	}
	if pages := w.stream(api.ArchiveIndexStream).CachedInfo().State.Msgs; pages > 5 {
		t.Errorf("%d pages for 5 sessions: some are on several", pages)
	}
}

// A beginning of an archived session that its stream still has, as after a release that was cut short, does not open it again.
func TestArchiveLeftovers(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond})
	over := w.deals(1, 0)[0]
	w.holds(api.SessionsStream, 0)
	w.holds(api.ArchiveIndexStream, 1)
	entries, err := w.b.Broker.Parts.Reader.Archived(t.Context(), over.ID)
	testkit.Must(t, err)
	w.b.Down()
	w.b.Up()
	for _, e := range entries[:len(entries)-1] {
		testkit.Eventually(t, "an entry is there again", func() bool {
			_, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: api.Session(over.ID), Data: e.Data}, jetstream.WithRetryAttempts(0))
			return err == nil
		})
	}
	if code := over.Code(alpha, "OBSERVE", `{"subject":"late"}`); code != "wrong_state" {
		t.Errorf("a late act: %s", code)
	}
	over.Again()
}

// A store that was made without an archive says so.
func TestArchiveIsMadeWithTheStore(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Second})
	b.Down()
	_, err := server.Start(t.Context(), server.Options{Data: b.Data, Listen: "127.0.0.1:-1", Dev: true, Archive: archive.Policy{After: time.Hour}})
	if err == nil || !strings.Contains(err.Error(), store.ErrNoArchive.Error()) {
		t.Errorf("an archive for a store without: %v", err)
	}
	n, err := server.Start(t.Context(), server.Options{Data: b.Data, Listen: "127.0.0.1:-1", Dev: true, Archive: archive.Policy{After: time.Hour, IfThere: true}})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, n.Close(t.Context()))
}
