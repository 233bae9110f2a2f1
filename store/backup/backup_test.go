package backup

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// A place is a server with a store on which no broker runs.
type place struct {
	testing.TB
	ctx   context.Context //nolint:containedctx // the test's own
	nc    *nats.Conn
	js    jetstream.JetStream
	store *store.Store
}

func newPlace(t testing.TB, shards int) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), natskit.Patience)
	t.Cleanup(cancel)
	p := &place{TB: t, ctx: ctx, nc: natskit.StartSharded(t, shards).Connect()}
	var err error
	p.js, err = jetstream.New(p.nc)
	natskit.Must(t, err)
	p.store, err = store.Open(ctx, store.Options{Conn: p.nc, Shards: shards})
	natskit.Must(t, err)
	t.Cleanup(p.store.Close)
	for _, bucket := range []string{api.BrokersBucket, api.LedgerBucket} {
		_, err = p.store.Bucket(ctx, bucket, "", 0)
		natskit.Must(t, err)
	}
	return p
}

// send stores messages.
func (p *place) send(subjects ...string) {
	p.Helper()
	for _, subject := range subjects {
		_, err := p.js.Publish(p.ctx, subject, []byte("{}"))
		natskit.Must(p, err)
	}
}

// enter adds entries to transcripts, each of its own.
func (p *place) enter(entries int) {
	p.Helper()
	for range entries {
		subject := api.Session(natskit.NewSession())
		if shards := p.store.Shards(); shards > 1 {
			n, _ := api.ShardOf(subject, shards)
			subject = api.ToShard(n, subject)
		}
		p.send(subject)
	}
}

func (p *place) backup() (Manifest, *os.File) {
	p.Helper()
	file, err := os.Create(filepath.Join(p.TempDir(), "parley.tar"))
	natskit.Must(p, err)
	p.Cleanup(func() { file.Close() })
	m, err := Write(p.ctx, p.nc, nil, file)
	natskit.Must(p, err)
	return m, file
}

// A broker may start while a backup is made of a store that had none: whatever it accepts comes after what the
// backup says is applied.
func TestBackupWithoutBrokers(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 2} {
		p := newPlace(t, shards)
		p.enter(9)
		ends, err := p.store.Ends(p.ctx, api.SessionsStream)
		natskit.Must(t, err)
		m, _ := p.backup()
		if !slices.Equal(m.Applied, ends) {
			t.Errorf("%d shards: the backup has applied %v, want %v", shards, m.Applied, ends)
		}
		bucket, err := p.js.KeyValue(p.ctx, api.BrokersBucket)
		natskit.Must(t, err)
		_, err = bucket.Put(p.ctx, "broker", []byte(`{"applied":7}`))
		natskit.Must(t, err)
		if m, _ := p.backup(); !slices.Equal(m.Applied, store.Marks{7}) {
			t.Errorf("%d shards: beside a broker the backup has applied %v", shards, m.Applied)
		}
	}
}

// A log that was restored and did not resume is bounded by the shortest of its backups: what came after that was
// never published, and others may have been published in its place.
func TestLogStaysBounded(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{"": `{"size":3}`, `{"size":1}`: `{"size":1}`, `{"size":5}`: `{"size":3}`} {
		from := newPlace(t, 1)
		from.send(api.Leaf("session", "a"), api.Leaf("session", "b"), api.Leaf("session", "c"))
		if before != "" {
			bucket, err := from.js.KeyValue(from.ctx, api.LedgerBucket)
			natskit.Must(t, err)
			_, err = bucket.Put(from.ctx, api.RestoredKey, []byte(before))
			natskit.Must(t, err)
		}
		_, file := from.backup()
		to := natskit.StartSharded(t, 1).Connect()
		_, err := Restore(from.ctx, to, io.NewSectionReader(file, 0, math.MaxInt64), Options{})
		natskit.Must(t, err)
		js, err := jetstream.New(to)
		natskit.Must(t, err)
		bucket, err := js.KeyValue(from.ctx, api.LedgerBucket)
		natskit.Must(t, err)
		bound, err := bucket.Get(from.ctx, api.RestoredKey)
		natskit.Must(t, err)
		if string(bound.Value()) != want {
			t.Errorf("the bound %q becomes %s, want %s", before, bound.Value(), want)
		}
	}
}

// What is derived from other data comes before it, so that nothing in a backup lacks what it is of.
func TestOrder(t *testing.T) {
	t.Parallel()
	want := []string{
		api.StreamOf(api.BrokersBucket), api.StreamOf(api.AgentsBucket), api.InboxStream, api.LogStream, api.SessionsStream,
		api.ArchiveIndexStream, api.ArchiveStream,
	}
	got := slices.Sorted(slices.Values(want))
	Order(got)
	if !slices.Equal(got, want) {
		t.Errorf("snapshots in the order %q, want %q", got, want)
	}
}

// No broker starts on a server on which a restore has not ended, and nothing is backed up of it. The next restore
// begins anew there.
func TestRestoreBeginsAnew(t *testing.T) {
	t.Parallel()
	from := newPlace(t, 1)
	from.enter(9)
	_, file := from.backup()
	info, err := file.Stat()
	natskit.Must(t, err)
	for _, shards := range []int{0, 2} {
		to := natskit.StartSharded(t, max(1, shards)).Connect()
		restore := func(bytes int64) error {
			_, err := Restore(from.ctx, to, io.NewSectionReader(file, 0, bytes), Options{Shards: shards})
			return err
		}
		open := func() error {
			s, err := store.Open(from.ctx, store.Options{Conn: to, Shards: shards})
			if err == nil {
				s.Close()
			}
			return err
		}
		for range 2 { // the second removes what the first has left
			if err := restore(info.Size() - 4096); !errors.Is(err, ErrDamaged) {
				t.Fatalf("a part of a backup: %v, want %v", err, ErrDamaged)
			}
			if err := open(); !errors.Is(err, store.ErrRestoring) {
				t.Errorf("a broker starts on a part of a store: %v, want %v", err, store.ErrRestoring)
			}
			if _, err := Write(from.ctx, to, nil, file); !errors.Is(err, store.ErrRestoring) {
				t.Errorf("a part of a store is backed up: %v, want %v", err, store.ErrRestoring)
			}
		}
		ended, err := alone(from.ctx, to)
		natskit.Must(t, err)
		if err := restore(info.Size()); !errors.Is(err, ErrUnderWay) {
			t.Errorf("beside another restore: %v, want %v", err, ErrUnderWay)
		}
		ended()
		natskit.Must(t, to.Flush())
		natskit.Must(t, restore(info.Size()))
		if _, err := store.Open(from.ctx, store.Options{Conn: to, Shards: shards, Dev: true}); !errors.Is(err, store.ErrNotDev) {
			t.Errorf("--dev opens what was restored: %v, want %v", err, store.ErrNotDev)
		}
		natskit.Must(t, open())
		left, err := streams(from.ctx, to, func(name string) bool { return !ours(name) || name == api.RestoringStream })
		if err != nil || len(left) > 0 {
			t.Errorf("%q are left, %v", left, err)
		}
		if err := restore(info.Size()); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("a restore beside a store: %v, want %v", err, ErrNotEmpty)
		}
	}
}

// Whether the server's snapshots have the consumers of inboxes or they are listed, each goes on after what it has
// acknowledged, and those of sessions are gone.
func TestReadersGoOn(t *testing.T) {
	t.Parallel()
	const agent performatives.Agent = "agent://acme.com/a"
	from := newPlace(t, 1)
	id := natskit.NewSession()
	for _, subject := range []string{api.InboxOf("agent://acme.com/b"), api.InboxOf(agent)} {
		for range 5 {
			from.send(strings.Replace(subject, "*", string(id), 1))
		}
	}
	for durable, threshold := range map[string]time.Duration{"reads": 0, "reads+session": time.Hour} {
		c, err := from.js.CreateConsumer(from.ctx, api.InboxStream, jetstream.ConsumerConfig{Durable: durable, FilterSubject: api.InboxOf(agent), InactiveThreshold: threshold})
		natskit.Must(t, err)
		for range 2 {
			m, err := c.Next()
			natskit.Must(t, err)
			natskit.Must(t, m.DoubleAck(from.ctx))
		}
	}
	for _, exact := range []int{0, 1} {
		file, err := os.Create(filepath.Join(t.TempDir(), "parley.tar"))
		natskit.Must(t, err)
		t.Cleanup(func() { file.Close() })
		_, err = write(from.ctx, from.nc, nil, file, exact)
		natskit.Must(t, err)
		for _, shards := range []int{0, 2} {
			to := natskit.StartSharded(t, max(1, shards)).Connect()
			_, err := Restore(from.ctx, to, io.NewSectionReader(file, 0, math.MaxInt64), Options{Shards: shards})
			natskit.Must(t, err)
			js, err := jetstream.New(to)
			natskit.Must(t, err)
			inbox := api.InboxStreamOf(agent, max(1, shards))
			c, err := js.Consumer(from.ctx, inbox, "reads")
			natskit.Must(t, err)
			if info := c.CachedInfo(); info.NumPending != 3 || info.NumAckPending != 0 || info.Config.FilterSubject != api.InboxOf(agent) {
				t.Errorf("%d exact snapshots, %d shards: %d wait for %s, and %d for its acknowledgement", exact, shards, info.NumPending, info.Config.FilterSubject, info.NumAckPending)
			}
			if _, err := js.Consumer(from.ctx, inbox, "reads+session"); !errors.Is(err, jetstream.ErrConsumerNotFound) {
				t.Errorf("%d exact snapshots, %d shards: the session's reader: %v", exact, shards, err)
			}
		}
	}
}

// lost has nobody listen to the first message, when it comes for the first time.
type lost struct {
	jetstream.JetStream
	p    *place
	sent int
}

func (l *lost) PublishMsgAsync(m *nats.Msg, o ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	l.sent++
	if l.sent > 1 {
		return l.JetStream.PublishMsgAsync(m, o...)
	}
	m.Subject = "asp.late"
	ack, err := l.JetStream.PublishMsgAsync(m, o...)
	natskit.Must(l.p, err)
	natskit.Must(l.p, l.p.nc.Flush())
	_, err = l.p.js.CreateStream(l.p.ctx, jetstream.StreamConfig{Name: "LATE", Subjects: []string{m.Subject}})
	natskit.Must(l.p, err)
	return ack, nil
}

// Entries that are copied to their shards stay in order: one that finds nobody is not sent again after the others.
func TestReshardKeepsOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 2)
	natskit.Must(t, p.js.DeleteStream(p.ctx, api.ShardsStream)) // which has the subjects of what is sent here
	_, err := p.js.CreateStream(p.ctx, jetstream.StreamConfig{Name: aside + api.SessionsStream, Subjects: []string{api.AllSessions}})
	natskit.Must(t, err)
	said := api.Session(natskit.NewSession())
	p.send(said, said, said)
	r := &resharder{js: &lost{JetStream: p.js, p: p}, store: p.store, shards: 2, of: 1, streams: []string{api.SessionsStream}}
	var first store.Marks
	if err := r.copyStream(p.ctx, api.SessionsStream, store.Marks{0}, &first); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("an entry that was lost on its way is copied after the others: %v", err)
	}
}
