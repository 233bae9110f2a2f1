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

// ErrElsewhere means that a stream's messages are not in the files where this
// package expects them, so it cannot make them durable.
var ErrElsewhere = errors.New("embedded: the messages are not in the store's files")

// Durable returns once everything that a stream has acknowledged is on disk. With
// one replica, an acknowledged message is in the stream's newest block file, and
// Durable fsyncs that file. It is a group commit: one fsync serves all callers that
// wait for one, unlike the server's own "sync_interval: always".
//
// added is the least number of bytes that the caller had acknowledged since its
// last call. The files must have grown by that much, or Durable returns
// ErrElsewhere: a server that stores messages differently is never taken for
// durable. A failed fsync is final, because it leaves unknown what was lost.
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

// blocks are the files of one stream: 1.blk, 2.blk and so on. Only the last is
// written to.
type blocks struct {
	pattern string
	dir     string

	mu    sync.Mutex
	next  *commit // the commit after the running one
	busy  bool    // a commit is running
	fault error   // final

	// These belong to the running commit.
	last         *os.File
	number       int
	before       int64 // bytes of earlier blocks, less the bytes at the start
	acknowledged int64 // bytes acknowledged since the start, at least
}

// A commit is one fsync and all callers that wait for it.
type commit struct {
	added int64
	done  chan struct{}
	err   error
}

// durable waits for the first commit that begins after the call.
func (f *blocks) durable(added int64) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &commit{done: make(chan struct{})}
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

// run does one commit and reports whether another is waiting. It yields before the
// fsync: goroutines that are ready to run may be about to ask for one and can share
// it. If there are none, yielding costs nothing.
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

// sync fsyncs the last block and those that were started since.
func (f *blocks) sync(added int64) error {
	f.acknowledged += added
	for {
		next, err := f.newer(added == 0)
		if err != nil {
			return err
		}
		if next == 0 {
			break
		}
		if err := f.advance(next); err != nil {
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
	if grown < f.acknowledged {
		return fmt.Errorf("%w: %s has %d bytes less than were acknowledged", ErrElsewhere, f.pattern, f.acknowledged-grown)
	}
	return nil
}

// newer is the number of a block that was started after the last, 0 if there is
// none. Usually it is the next number. If messages were deleted, whole blocks may be
// gone, so with all set it lists the files.
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

// advance fsyncs and closes the last block and continues with a newer one.
func (f *blocks) advance(number int) error {
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
	if first && f.acknowledged == 0 {
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

// syncDir fsyncs the directory, so that the names of the blocks are durable.
func (f *blocks) syncDir() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// close closes the files. Later calls of durable return os.ErrClosed.
func (f *blocks) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault = os.ErrClosed; f.last != nil && !f.busy {
		f.last.Close() //nolint:errcheck // it was read only
	}
}
