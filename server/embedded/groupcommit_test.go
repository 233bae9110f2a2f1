package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/test/natskit"
)

// Acknowledged messages are in the files that are fsynced, also after the server
// has started new files, and for concurrent callers.
func TestDurable(t *testing.T) {
	t.Parallel()
	w := start(t, true)
	stream, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}, Storage: jetstream.FileStorage})
	natskit.Must(t, err)
	if err := w.server.Durable("S", 0); err != nil {
		t.Fatalf("nothing was written yet: %v", err)
	}
	const size, each, workers = 64 << 10, 40, 8
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for range each {
				ack, err := w.js.Publish(w.ctx, fmt.Sprint("s.", n), make([]byte, size))
				if err == nil {
					err = w.server.Durable("S", ack.Sequence)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	blocks, err := filepath.Glob(filepath.Join(w.store, "jetstream", "*", "streams", "S", "msgs", "*.blk"))
	natskit.Must(t, err)
	if len(blocks) < 2 {
		t.Errorf("%d blocks: too few to see one begin", len(blocks))
	}
	// Messages and whole blocks may be deleted.
	natskit.Must(t, stream.Purge(w.ctx))
	for _, sequence := range []bool{false, true} {
		ack, err := w.js.Publish(w.ctx, "s.0", make([]byte, size))
		natskit.Must(t, err)
		if !sequence {
			ack.Sequence = 0
		}
		if err := w.server.Durable("S", ack.Sequence); err != nil {
			t.Error(err)
		}
	}
}

// After a clean end, what was written last is on disk, in every stream.
func TestShutdownFsyncs(t *testing.T) {
	t.Parallel()
	w := start(t, true)
	for _, name := range []string{"A", "B", "NOTHING"} {
		_, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage})
		natskit.Must(t, err)
	}
	for _, name := range []string{"A", "B"} {
		_, err := w.js.Publish(w.ctx, name, nil)
		natskit.Must(t, err)
	}
	before := w.fsyncs.Load()
	w.server.Shutdown()
	if made := w.fsyncs.Load() - before; before != 0 || made < 2 {
		t.Errorf("%d fsyncs before the end, %d at it", before, made)
	}
}

// Messages that are not in the expected files are not durable, and that is final, also if
// it is only the last of many.
func TestDurableElsewhere(t *testing.T) {
	t.Parallel()
	w := start(t, true)
	_, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "M", Subjects: []string{"m"}, Storage: jetstream.MemoryStorage})
	natskit.Must(t, err)
	ack, err := w.js.Publish(w.ctx, "m", []byte("in memory"))
	natskit.Must(t, err)
	for range 2 {
		if err := w.server.Durable("M", ack.Sequence); !errors.Is(err, embedded.ErrElsewhere) {
			t.Errorf("%v, want %v", err, embedded.ErrElsewhere)
		}
	}
	_, err = w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
	natskit.Must(t, err)
	say := func(text string) uint64 {
		ack, err := w.js.Publish(w.ctx, "s", []byte(text))
		natskit.Must(t, err)
		return ack.Sequence
	}
	for n := range 100 {
		natskit.Must(t, w.server.Durable("S", say(fmt.Sprint("on disk ", n))))
	}
	path, err := filepath.Glob(filepath.Join(w.store, "jetstream", "*", "streams", "S", "msgs", "*.blk"))
	natskit.Must(t, err)
	before, err := os.Stat(path[0])
	natskit.Must(t, err)
	lost := say("cut off")
	natskit.Must(t, os.Truncate(path[0], before.Size()))
	for range 2 {
		if err := w.server.Durable("S", lost); !errors.Is(err, embedded.ErrElsewhere) {
			t.Errorf("%v, want %v", err, embedded.ErrElsewhere)
		}
	}
}
