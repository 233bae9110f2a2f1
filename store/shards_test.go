package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

func openShards(t *testing.T, at *natskit.Server, shards int) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Conn: at.Connect(), Shards: shards})
	natskit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// --dev opens a store until a broker with logins has opened it.
func TestOnlyADevelopmentStoreIsOpen(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 2} {
		conn := natskit.StartSharded(t, shards).Connect()
		for i, c := range []struct {
			dev  bool
			want error
		}{{true, nil}, {true, nil}, {false, nil}, {true, store.ErrNotDev}, {false, nil}, {true, store.ErrNotDev}} {
			s, err := store.Open(t.Context(), store.Options{Conn: conn, Shards: shards, Dev: c.dev})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%d shards, start %d: %v, want %v", shards, i, err, c.want)
			}
		}
	}
}

// Whatever is stored in one of several streams is found as in one.
func TestShards(t *testing.T) {
	t.Parallel()
	const shards, sessions, entries = 4, 40, 3
	ctx, at := t.Context(), natskit.StartServer(t)
	s := openShards(t, at, shards)
	work := background.New()
	defer work.Close()
	follow := func() (seen chan string, caughtUp <-chan struct{}) {
		seen = make(chan string, 2*sessions)
		caughtUp, err := s.Follow(ctx, work, store.Feed{Stream: api.IndexStream}, func(m store.Message, _ bool) { seen <- m.Subject })
		natskit.Must(t, err)
		return seen, caughtUp
	}
	news, empty := follow()
	natskit.Must(t, background.Await(ctx, empty))
	before, err := s.NewestEntries(ctx)
	natskit.Must(t, err)
	used := map[int]bool{}
	last := map[performatives.SessionID]uint64{}
	for range sessions {
		id := natskit.NewSession()
		used[s.Shard(id)] = true
		for n := range entries {
			last[id], err = s.Append(ctx, id, []byte(fmt.Sprint(n)), store.Header{}, last[id])
			natskit.Must(t, err)
		}
		if _, err := s.Append(ctx, id, []byte("?"), store.Header{}, 1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("after another entry: %v", err)
		}
		_, err := s.PutIf(ctx, store.Message{Subject: api.Index(id), Data: []byte("row")}, 0)
		natskit.Must(t, err)
	}
	if len(used) != shards {
		t.Errorf("of %d shards, %v are used", shards, used)
	}
	for id, position := range last {
		var read []string
		natskit.Must(t, s.Read(ctx, api.SessionsStream, api.Session(id), 0, func(m store.Message) error {
			read = append(read, m.Subject+" "+string(m.Data))
			return nil
		}))
		if want := []string{api.Session(id) + " 0", api.Session(id) + " 1", api.Session(id) + " 2"}; !slices.Equal(read, want) {
			t.Errorf("read %v", read)
		}
		newest, err := s.LastEntry(ctx, id)
		m, failed := s.At(ctx, api.SessionsStream, position)
		if err := errors.Join(err, failed); err != nil || newest != position || m == nil || string(m.Data) != "2" || m.Sequence != position {
			t.Errorf("at %d is %v, the newest is at %d: %v", position, m, newest, err)
		}
	}
	ends, err := s.NewestEntries(ctx)
	natskit.Must(t, err)
	counted := 0
	natskit.Must(t, s.ReadSince(ctx, before, func(m store.Message) error {
		counted++
		before.After(m.Sequence)
		return nil
	}))
	if counted != sessions*entries || !slices.Equal(before, ends) {
		t.Errorf("%d entries up to %v, which end at %v", counted, before, ends)
	}
	counted = 0
	natskit.Must(t, s.Read(ctx, api.SessionsStream, api.AllSessions, 0, func(store.Message) error { counted++; return nil }))
	if counted != sessions*entries {
		t.Errorf("of all sessions, %d entries are read", counted)
	}
	old, all := follow()
	natskit.Must(t, background.Await(ctx, all))
	if len(old) != sessions {
		t.Errorf("%d rows were there", len(old))
	}
	for range sessions {
		<-news
	}
	paged := map[string]bool{}
	for from := 0; from < sessions; from += 7 {
		subjects, total, err := s.Subjects(ctx, api.SessionsStream, api.AllSessions, from)
		if err != nil || total != sessions || len(subjects) != sessions-from {
			t.Errorf("%d of %d subjects from %d: %v", len(subjects), total, from, err)
		}
		for _, subject := range subjects {
			paged[subject] = from == 0 || paged[subject]
		}
	}
	if len(paged) != sessions || slices.Contains(slices.Collect(maps.Values(paged)), false) {
		t.Errorf("pages have %d subjects, and others than the first", len(paged))
	}
}

// A store has as many shards as it was made with. One is the plain streams.
func TestOtherShards(t *testing.T) {
	t.Parallel()
	for made, others := range map[int][]int{1: {4}, 4: {0, 1, 5}} {
		at := natskit.StartServer(t)
		openShards(t, at, made)
		for _, other := range others {
			if _, err := store.Open(t.Context(), store.Options{Conn: at.Connect(), Shards: other}); !errors.Is(err, store.ErrShards) {
				t.Errorf("made with %d, opened with %d: %v", made, other, err)
			}
		}
		js, err := jetstream.New(at.Connect())
		natskit.Must(t, err)
		stream, err := js.Stream(t.Context(), api.SessionsStream)
		natskit.Must(t, err)
		plainly := stream.CachedInfo().Config // as by a broker that knows no shards
		plainly.Subjects, plainly.SubjectTransform = []string{api.AllSessions}, nil
		if _, err := js.UpdateStream(t.Context(), plainly); (err == nil) != (made == 1) {
			t.Errorf("made with %d, made plain: %v", made, err)
		}
		if plain := slices.Equal(stream.CachedInfo().Config.Subjects, []string{api.AllSessions}); plain != (made == 1) {
			t.Errorf("with %d shards the first has %v", made, stream.CachedInfo().Config.Subjects)
		}
		found, err := store.Examine(t.Context(), at.Connect())
		if err != nil || len(found.Missing)+len(found.Wrong) > 0 {
			t.Errorf("%d shards: %+v: %v", made, found, err)
		}
	}
}
