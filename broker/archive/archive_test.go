package archive_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// A shelf is a store with a session list, in which sessions have ended.
type shelf struct {
	*testing.T
	store *store.Store
	list  *sessionlist.List
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Conn: natskit.StartServer(t).Connect(), Archive: true})
	natskit.Must(t, err)
	t.Cleanup(s.Close)
	w := &shelf{T: t, store: s}
	w.list = w.openList()
	return w
}

func (w *shelf) openList() *sessionlist.List {
	w.Helper()
	r := archive.NewReader(w.store, zap.NewNop())
	l, err := sessionlist.Open(w.Context(), sessionlist.Options{Store: w.store, FollowArchive: r.Follow, ArchivedRow: r.Row})
	natskit.Must(w, err)
	w.Cleanup(l.Close)
	return l
}

// transcript is what each session of a shelf has said, some of it sealed.
var transcript = []archive.Entry{
	{Data: []byte(`{"sequenceNumber":0}`)},
	{Data: []byte(`{"sequenceNumber":1}`), Sealed: `{"authority":{"salt":"s","value":{"maxAmount":5}}}`, Routes: `[{"salt":"s"}]`},
}

func same(a, b archive.Entry) bool {
	return bytes.Equal(a.Data, b.Data) && a.Sealed == b.Sealed && a.Routes == b.Routes
}

var closed = sessionlist.Row{State: session.Closed, Participants: []performatives.Agent{"agent://acme.com/alpha"}, Entries: 2}

// ends is a session that has ended.
func (w *shelf) ends() performatives.SessionID {
	w.Helper()
	id, last := natskit.NewSession(), uint64(0)
	for _, entry := range transcript {
		var err error
		last, err = w.store.Append(w.Context(), id, entry.Data, entry.Beside(), last)
		natskit.Must(w, err)
	}
	natskit.Must(w, w.list.Write(w.Context(), id, closed, false))
	return id
}

// opens starts an archiver that archives at once.
func (w *shelf) opens(change ...func(*archive.Options)) *archive.Archiver {
	w.Helper()
	o := archive.Options{
		Store: w.store, List: w.list, Policy: archive.Policy{After: time.Millisecond, Retry: 100 * time.Millisecond, Takeover: time.Second},
		Ended: func(context.Context, performatives.SessionID) (sessionlist.Row, error) { return closed, nil },
	}
	for _, c := range change {
		c(&o)
	}
	a, err := archive.Open(w.Context(), o)
	natskit.Must(w, err)
	w.Cleanup(a.Close)
	return a
}

// at has an archiver call f at a failpoint.
func at(name string, f func()) func(*archive.Options) {
	return func(o *archive.Options) {
		o.Failpoint = func(n string) {
			if n == name {
				f()
			}
		}
	}
}

// An ended session leaves the stream of transcripts and the rows of ended sessions; the archive
// has its entries, and the list its row, now and when it is opened again.
func TestArchiver(t *testing.T) {
	t.Parallel()
	w := newShelf(t)
	ids := []performatives.SessionID{w.ends(), w.ends(), w.ends()}
	natskit.Must(t, w.list.Write(t.Context(), ids[0], closed, false)) // again, as another broker does
	points, listed := archive.Failpoints(), make(chan struct{}, len(ids))
	w.opens(at(points[len(points)-1], func() { listed <- struct{}{} }))
	for range ids {
		<-listed
	}
	reader, later := archive.NewReader(w.store, zap.NewNop()), w.openList()
	for _, id := range ids {
		if got, err := reader.Archived(t.Context(), id); err != nil || !slices.EqualFunc(got, transcript, same) {
			t.Errorf("the archive has %q of %s, %v", got, id, err)
		}
		if last, err := w.store.LastEntry(t.Context(), id); err != nil || last != 0 {
			t.Errorf("%s has entry %d among the transcripts, %v", id, last, err)
		}
		if m, err := w.store.Last(t.Context(), api.IndexStream, api.IndexOver(id)); err != nil || m != nil {
			t.Errorf("%s has a row among the ended sessions: %+v, %v", id, m, err)
		}
		for _, l := range []*sessionlist.List{w.list, later} {
			if row, err := l.Stored(t.Context(), id); err != nil || row == nil || row.State != session.Closed || row.Entries != 2 {
				t.Errorf("%s is listed as %+v, %v", id, row, err)
			}
		}
	}
	if got, err := later.Page(t.Context(), sessionlist.All(), "CLOSED", sessionlist.Place{}, 9); err != nil || len(got) != len(ids) {
		t.Errorf("%v are listed, %v, want %v", got, err, ids)
	}
	if got, err := reader.Archived(t.Context(), natskit.NewSession()); err != nil || got != nil {
		t.Errorf("of a session that is nowhere it has %q, %v", got, err)
	}
}

// A session that has not ended yet stays where it is, and keeps no other.
func TestNotEnded(t *testing.T) {
	t.Parallel()
	w := newShelf(t)
	early, due := w.ends(), w.ends()
	points, listed := archive.Failpoints(), make(chan struct{}, 1)
	w.opens(at(points[len(points)-1], func() { listed <- struct{}{} }), func(o *archive.Options) {
		o.Ended = func(_ context.Context, id performatives.SessionID) (sessionlist.Row, error) {
			if id == early {
				return sessionlist.Row{}, errors.New("side effects are not applied")
			}
			return closed, nil
		}
	})
	<-listed
	if w.list.PageOf(due) == 0 || w.list.PageOf(early) != 0 {
		t.Errorf("on pages of the archive's index: %s on %d, %s on %d", due, w.list.PageOf(due), early, w.list.PageOf(early))
	}
	if last, err := w.store.LastEntry(t.Context(), early); err != nil || last == 0 {
		t.Errorf("%s has no entry among the transcripts, %v", early, err)
	}
}

// goroutines counts those of archivers.
func goroutines(t *testing.T) int {
	t.Helper()
	var all bytes.Buffer
	natskit.Must(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
	return strings.Count(all.String(), "parley/broker/archive.(*Archiver)")
}

// Wherever an archiver stops, Close leaves no goroutine, and the whole transcript is among
// the transcripts or in the archive.
func TestClose(t *testing.T) { //nolint:paralleltest // it counts goroutines
	w := newShelf(t)
	reader := archive.NewReader(w.store, zap.NewNop())
	for _, point := range archive.Failpoints() {
		id, stopped := w.ends(), make(chan struct{})
		stop := sync.OnceFunc(func() { close(stopped) })
		a := w.opens(at(point, func() {
			stop()
			runtime.Goexit()
		}))
		<-stopped
		if goroutines(t) == 0 && point == archive.Failpoints()[0] {
			t.Error("an archiver that waits has no goroutine")
		}
		a.Close()
		natskit.Eventually(t, point+": Close leaves no goroutine", func() bool { return goroutines(t) == 0 })
		got, err := reader.Archived(t.Context(), id)
		if err == nil && got == nil {
			err = w.store.Read(t.Context(), api.SessionsStream, api.Session(id), 1, func(m store.Message) error {
				got = append(got, archive.EntryOf(m))
				return nil
			})
		}
		if err != nil || !slices.EqualFunc(got, transcript, same) {
			t.Errorf("%s: the transcript is %q, %v", point, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Open(ctx, archive.Options{Store: w.store, List: w.list, Policy: archive.Policy{After: time.Hour}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a cancelled context: %v", err)
	}
	natskit.Eventually(t, "a failed Open leaves no goroutine", func() bool { return goroutines(t) == 0 })
}
