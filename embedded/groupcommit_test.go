package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/embedded"
	"github.com/parley-asp/parley/internal/testkit"
)

// Acknowledged messages are in the files that are fsynced, also after the server
// has started new files, and for concurrent callers.
func TestDurable(t *testing.T) {
	t.Parallel()
	w := start(t, true)
	stream, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}, Storage: jetstream.FileStorage})
	testkit.Must(t, err)
	if err := w.server.Durable("S", 0); err != nil {
		t.Fatalf("nothing was written yet: %v", err)
	}
	const size, each, workers = 64 << 10, 40, 8
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for range each {
				if _, err := w.js.Publish(w.ctx, fmt.Sprint("s.", n), make([]byte, size)); err != nil {
					t.Error(err)
				}
				if err := w.server.Durable("S", size); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	blocks, err := filepath.Glob(filepath.Join(w.store, "jetstream", "*", "streams", "S", "msgs", "*.blk"))
	testkit.Must(t, err)
	if len(blocks) < 2 {
		t.Errorf("%d blocks: too few to see one begin", len(blocks))
	}
	// Messages and whole blocks may be deleted.
	testkit.Must(t, stream.Purge(w.ctx))
	_, err = w.js.Publish(w.ctx, "s.0", make([]byte, size))
	testkit.Must(t, err)
	if err := w.server.Durable("S", 0); err != nil {
		t.Error(err)
	}
}

// Bytes that are not in the expected files are not durable, and that is final.
func TestDurableElsewhere(t *testing.T) {
	t.Parallel()
	w := start(t, true)
	_, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "M", Subjects: []string{"m"}, Storage: jetstream.MemoryStorage})
	testkit.Must(t, err)
	_, err = w.js.Publish(w.ctx, "m", []byte("in memory"))
	testkit.Must(t, err)
	for range 2 {
		if err := w.server.Durable("M", 9); !errors.Is(err, embedded.ErrElsewhere) {
			t.Errorf("%v, want %v", err, embedded.ErrElsewhere)
		}
	}
	_, err = w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
	testkit.Must(t, err)
	_, err = w.js.Publish(w.ctx, "s", []byte("on disk"))
	testkit.Must(t, err)
	testkit.Must(t, w.server.Durable("S", 0))
	path, err := filepath.Glob(filepath.Join(w.store, "jetstream", "*", "streams", "S", "msgs", "*.blk"))
	testkit.Must(t, err)
	_, err = w.js.Publish(w.ctx, "s", []byte("cut off"))
	testkit.Must(t, err)
	testkit.Must(t, os.Truncate(path[0], 1))
	for range 2 {
		if err := w.server.Durable("S", 7); !errors.Is(err, embedded.ErrElsewhere) {
			t.Errorf("%v, want %v", err, embedded.ErrElsewhere)
		}
	}
}
