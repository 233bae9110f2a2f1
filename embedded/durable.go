package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// ErrElsewhere means that the server keeps a stream's messages where this
// package does not look for them, so that nobody can say whether they are on disk.
var ErrElsewhere = errors.New("embedded: the messages are not in the store's files")

// Durable returns once what a stream has acknowledged is on disk: on R1, an
// acknowledged message was written to the stream's newest block file, and this
// has that file fsynced. One fsync serves all who wait for one, which the
// server's own sync_interval always does not do.
//
// added says how many bytes the caller had acknowledged since it asked last, at
// least. The file has to have grown by as much: a server that keeps its messages
// in another way is noticed, and never taken for durable. A failed fsync is final,
// since nobody knows what of the file was lost with it.
func (s *Server) Durable(stream string, added int) error {
	s.mu.Lock()
	f := s.files[stream]
	if f == nil {
		f = &blocks{pattern: filepath.Join(s.nats.JetStreamConfig().StoreDir, "*", "streams", stream, "msgs", "*.blk")}
		s.files[stream] = f
	}
	s.mu.Unlock()
	return f.durable(int64(added))
}

// blocks are the files of one stream: 1.blk, 2.blk, …, of which only the last
// is written to.
type blocks struct {
	pattern string
	dir     string

	mu    sync.Mutex
	next  *round // of who came while the current one was under way
	busy  bool
	fault error

	// These belong to the round under way.
	last    *os.File
	number  int
	before  int64 // bytes of the blocks before the last, less what was there at first
	claimed int64 // bytes that have to have been added since
}

// A round is one fsync and all who wait for it.
type round struct {
	added int64
	done  chan struct{}
	err   error
}

// durable waits for the first round that begins after it was called.
func (f *blocks) durable(added int64) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &round{done: make(chan struct{})}
	}
	mine := f.next
	mine.added += added
	lead := !f.busy
	f.busy = true
	f.mu.Unlock()
	if lead && f.run() {
		go f.runAll()
	}
	<-mine.done
	return mine.err
}

func (f *blocks) runAll() {
	for more := true; more; {
		more = f.run()
	}
}

// run does one round and tells whether another waits. All that is ready to run goes
// first: the more there is of it, the more of it will want an fsync in a moment, and
// has this one. Where there is nothing else, nothing is waited for.
func (f *blocks) run() (more bool) {
	runtime.Gosched()
	f.mu.Lock()
	r := f.next
	f.next = nil
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		fault = f.sync(r.added)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.err = fault; f.fault == nil { // or it was closed meanwhile
		f.fault = fault
	}
	close(r.done)
	f.busy = f.next != nil
	return f.busy
}

// sync brings the last block, and those that were begun since, to disk.
func (f *blocks) sync(added int64) error {
	f.claimed += added
	for {
		next, err := f.newer(added == 0)
		if err != nil {
			return err
		}
		if next == 0 {
			break
		}
		if err := f.turn(next); err != nil {
			return err
		}
	}
	var grown int64
	if f.last != nil {
		if err := f.last.Sync(); err != nil {
			return err
		}
		size, err := f.size()
		if err != nil {
			return err
		}
		grown = f.before + size
	}
	if grown < f.claimed {
		return fmt.Errorf("%w: %s has %d bytes less than were acknowledged", ErrElsewhere, f.pattern, f.claimed-grown)
	}
	return nil
}

// newer is the number of a block that was begun after the last, 0 for none. A
// block follows the one before it, but when messages are deleted, whole blocks
// may have come and gone since: look at all where nothing tells that none has.
func (f *blocks) newer(all bool) (int, error) {
	if f.last != nil && !all {
		_, err := os.Stat(f.block(f.number + 1))
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return f.number + 1, err
	}
	found, err := filepath.Glob(f.pattern)
	newest := 0
	for _, path := range found {
		if n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk")); err == nil && n > max(f.number, newest) {
			newest, f.dir = n, filepath.Dir(path)
		}
	}
	return newest, err
}

// turn goes on to a newer block.
func (f *blocks) turn(number int) error {
	next, err := os.Open(f.block(number))
	if err != nil {
		return err
	}
	first := f.last == nil
	if !first {
		size, err := f.size()
		if err := errors.Join(err, f.last.Sync(), f.last.Close()); err != nil {
			return errors.Join(err, next.Close())
		}
		f.before += size
	}
	f.last, f.number = next, number
	if first && f.claimed == 0 {
		size, err := f.size()
		if err != nil {
			return err
		}
		f.before = -size
	}
	return f.syncDir()
}

func (f *blocks) block(n int) string { return filepath.Join(f.dir, strconv.Itoa(n)+".blk") }

func (f *blocks) size() (int64, error) {
	info, err := f.last.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// syncDir makes the names of the blocks durable.
func (f *blocks) syncDir() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// close lets go of the files: what asks from now on is told so.
func (f *blocks) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault = os.ErrClosed; f.last != nil && !f.busy {
		f.last.Close() //nolint:errcheck // it was read only
	}
}
