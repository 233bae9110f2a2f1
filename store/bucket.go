package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
)

var (
	// ErrNoKey means that a bucket has nothing under a key.
	ErrNoKey = errors.New("the bucket has no such key")
	// ErrKeyExists means that somebody else has just created it.
	ErrKeyExists = errors.New("the key exists")
)

// A Bucket is a key-value bucket.
type Bucket struct {
	store *Store
	name  string
	kv    jetstream.KeyValue
	seen  atomic.Uint64 // the newest revision that the watch has delivered
}

// An Entry is what a bucket has under a key.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
	Deleted  bool // only in a Watch
}

// Bucket opens a bucket, which is created if it is not there. Entries older than
// ttl expire; 0 is never.
func (s *Store) Bucket(ctx context.Context, name, description string, ttl time.Duration) (*Bucket, error) {
	replicas, err := s.replicas(ctx, api.StreamOf(name))
	if err != nil {
		return nil, err
	}
	kv, err := create(ctx, func(ctx context.Context) (jetstream.KeyValue, error) {
		return s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: description, TTL: ttl, Replicas: replicas, History: 1, Storage: jetstream.FileStorage,
		})
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{store: s, name: name, kv: kv}, nil
}

// Get reads a key, or returns ErrNoKey.
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	e, err := b.kv.Get(ctx, key)
	if err != nil {
		return Entry{}, keyError(err)
	}
	return Entry{Key: key, Value: e.Value(), Revision: e.Revision()}, nil
}

// Put writes a key, whatever it has.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return b.write(func() (uint64, error) { return b.kv.Put(ctx, key, value) })
}

// Create writes a key that is not there, or returns ErrKeyExists.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	revision, err = b.write(func() (uint64, error) { return b.kv.Create(ctx, key, value) })
	return revision, keyError(err)
}

// Update writes a key that is still at a revision, or returns ErrConflict.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	revision, err := b.write(func() (uint64, error) { return b.kv.Update(ctx, key, value, revision) })
	return revision, writeError(err)
}

// Delete takes a key away, whatever it has.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.write(func() (uint64, error) { return 0, b.kv.Delete(ctx, key) })
	return err
}

// DeleteIf takes a key away that is still at a revision, or returns ErrConflict.
func (b *Bucket) DeleteIf(ctx context.Context, key string, revision uint64) error {
	_, err := b.write(func() (uint64, error) { return 0, b.kv.Delete(ctx, key, jetstream.LastRevision(revision)) })
	return writeError(err)
}

// write asks for nothing that the server would not answer.
func (b *Bucket) write(ask func() (uint64, error)) (revision uint64, err error) {
	if err := b.store.Broken(); err != nil {
		return 0, err
	}
	return ask()
}

// Sync returns once what the bucket acknowledged is as safe as it is to be.
func (b *Bucket) Sync() error { return b.store.Sync(api.StreamOf(b.name), 0) }

// Seen is the newest revision that the watch has delivered.
func (b *Bucket) Seen() uint64 { return b.seen.Load() }

// Revision is the bucket's newest, as the server has it now.
func (b *Bucket) Revision(ctx context.Context) (uint64, error) {
	info, err := b.store.info(ctx, api.StreamOf(b.name))
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

const (
	catchUpWithin = time.Second // the longest that CatchUp waits
	catchUpPoll   = 5 * time.Millisecond
)

// CatchUp waits until the watch has delivered what the bucket has now.
func (b *Bucket) CatchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	newest, err := b.Revision(ctx)
	for err == nil && b.Seen() < newest {
		err = background.Pause(ctx, catchUpPoll)
	}
	return err
}

// markersFor is how long a bucket remembers that a key was taken away. Brokers that were cut off for so long are gone.
const markersFor = 7 * 24 * time.Hour

// Watch calls saw with all that the bucket holds before it returns, and then in
// the background with what changes. It also has the bucket forget the names of keys that were taken away long ago.
func (b *Bucket) Watch(ctx context.Context, work *background.Group, saw func(Entry)) error {
	return b.watch(ctx, work, markersFor, saw)
}

func (b *Bucket) watch(ctx context.Context, work *background.Group, markersFor time.Duration, saw func(Entry)) error {
	held, err := b.Revision(ctx)
	if err != nil {
		return err
	}
	prefix, before := "$KV."+b.name+".", time.Now().Add(-markersFor)
	var markers []marker
	err = b.store.FollowAll(ctx, work, api.StreamOf(b.name), func(m Message) {
		deleted := m.Header.Get(operationHeader) != ""
		if deleted && m.Sequence <= held && m.Time.Before(before) && len(markers) < mostMarkers {
			markers = append(markers, marker{m.Subject, m.Sequence})
		}
		saw(Entry{strings.TrimPrefix(m.Subject, prefix), m.Data, m.Sequence, deleted})
		b.delivered(m.Sequence)
	})
	if err == nil {
		b.delivered(held) // the newest may have been taken away
		work.Go(func(ctx context.Context) { b.forget(ctx, markers) })
	}
	return err
}

// A marker says that a key was taken away.
type marker struct {
	subject  string
	sequence uint64
}

// mostMarkers are those that one start takes away.
const mostMarkers = 1_000

// forget takes markers away. What it does not come to is left to the next start.
func (b *Bucket) forget(ctx context.Context, markers []marker) {
	if len(markers) == 0 {
		return
	}
	known, err := b.store.stream(ctx, api.StreamOf(b.name))
	for n := 0; err == nil && n < len(markers); n++ {
		err = known.Purge(ctx, jetstream.WithPurgeSubject(markers[n].subject), jetstream.WithPurgeSequence(markers[n].sequence+1))
	}
	if err != nil && ctx.Err() == nil {
		b.store.o.Log.Debug("names of removed keys are left to the next start", zap.String("bucket", b.name), zap.Error(err))
	}
}

// operationHeader is of what takes a key away.
const operationHeader = "KV-Operation"

// delivered notes up to which revision the watch has delivered all.
func (b *Bucket) delivered(revision uint64) {
	for {
		seen := b.seen.Load()
		if revision <= seen || b.seen.CompareAndSwap(seen, revision) {
			return
		}
	}
}

// Records are the last message of each key that matches a pattern of subjects, as the
// bucket's leader has them; the subject of each is its key. It is for patterns that few keys
// match.
func (b *Bucket) Records(ctx context.Context, pattern string) ([]Message, error) {
	return b.store.records(ctx, b.name, pattern)
}

func keyError(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return ErrNoKey
	case errors.Is(err, jetstream.ErrKeyExists):
		return ErrKeyExists
	}
	return err
}
