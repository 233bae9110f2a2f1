package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrElsewhere means that a stream's messages are not in the files where this
// package expects them, so it cannot make them durable.
var ErrElsewhere = errors.New("embedded: the messages are not in the store's files")

// Durable returns once everything that a stream has acknowledged is on disk. With
// one replica, an acknowledged message is in the stream's newest block file, and
// Durable fsyncs that file. It is a group commit: one fsync serves all callers that
// wait for one, unlike the server's own "sync_interval: always".
//
// sequence is that of a message that was acknowledged, 0 for none in particular. It
// must be in the file that was fsynced, or Durable returns ErrElsewhere: a server that
// stores messages differently is never taken for durable. A failed fsync is final,
// because it leaves unknown what was lost.
func (s *Server) Durable(stream string, sequence uint64) error {
	s.mu.Lock()
	f := s.files[stream]
	if f == nil {
		f = &blocks{pattern: filepath.Join(s.dir, "*", "streams", stream, "msgs", "*.blk"), fsynced: s.fsynced}
		s.files[stream] = f
	}
	s.mu.Unlock()
	return f.durable(sequence)
}

// blocks are the files of one stream: 1.blk, 2.blk and so on. Only the last is
// written to.
type blocks struct {
	pattern string
	dir     string
	fsynced func(time.Duration) // nil tells nobody

	mu    sync.Mutex
	next  *commit // the commit after the running one
	busy  bool    // a commit is running
	fault error   // final

	// These belong to the running commit.
	last   *os.File
	number int
	read   int64  // bytes of the last block whose records are known
	seen   uint64 // the highest sequence in them, or in an earlier block
}

// A commit is one fsync and all callers that wait for it.
type commit struct {
	sequence uint64 // the highest that one of them waits for
	done     chan struct{}
	err      error
}

// durable waits for the first commit that begins after the call.
func (f *blocks) durable(sequence uint64) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &commit{done: make(chan struct{})}
	}
	mine := f.next
	mine.sequence = max(mine.sequence, sequence)
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
		fault = f.sync(r.sequence)
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

// sync fsyncs the last block and those that were started since. A message that is not
// in them may be in files that took the place of those: the server writes a block
// anew, or drops it, once messages were deleted.
func (f *blocks) sync(sequence uint64) error {
	if err := f.syncNewer(sequence == 0); err != nil || f.seen >= sequence {
		return err
	}
	if f.last != nil {
		if err := f.last.Close(); err != nil {
			return err
		}
	}
	f.last, f.number, f.seen = nil, 0, 0
	if err := f.syncNewer(true); err != nil {
		return err
	}
	if f.seen < sequence {
		return fmt.Errorf("%w: %s has messages up to %d, and %d was acknowledged", ErrElsewhere, f.pattern, f.seen, sequence)
	}
	return nil
}

func (f *blocks) syncNewer(all bool) error {
	for {
		next, err := f.newer(all)
		if err != nil {
			return err
		}
		if next == 0 {
			break
		}
		file, err := os.Open(f.block(next))
		if errors.Is(err, os.ErrNotExist) {
			continue // the server dropped it meanwhile
		}
		if err != nil {
			return err
		}
		if err := f.advance(file, next); err != nil {
			return err
		}
	}
	if f.last == nil {
		return nil
	}
	begun := time.Now()
	err := f.last.Sync()
	if f.fsynced != nil {
		f.fsynced(time.Since(begun))
	}
	return errors.Join(err, f.scan())
}

// A record of a block begins with its length, sequence, time, and the length of its
// subject. The highest bit of the length says that there are headers; the two highest
// of a sequence, that the message was deleted.
const (
	recordHeader = 4 + 8 + 8 + 2
	withHeaders  = 1 << 31
	deletedAbove = 1 << 62
)

// scan reads which messages the last block has.
func (f *blocks) scan() error {
	info, err := f.last.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.read { // something was cut off
		f.read, f.seen = 0, 0
	}
	var header [recordHeader]byte
	for f.read+recordHeader <= info.Size() {
		if _, err := f.last.ReadAt(header[:], f.read); err != nil {
			return err
		}
		length := int64(binary.LittleEndian.Uint32(header[:]) &^ withHeaders)
		if length < recordHeader {
			return fmt.Errorf("%w: a record of %s has %d bytes", ErrElsewhere, f.last.Name(), length)
		}
		if f.read+length > info.Size() {
			break // it is being written
		}
		f.read += length
		if sequence := binary.LittleEndian.Uint64(header[4:]); sequence < deletedAbove {
			f.seen = max(f.seen, sequence)
		}
	}
	return nil
}

// unsynced is how long after it was written a block may not be on the disk: an operating system writes it within a minute.
const unsynced = 2 * time.Minute

// newer is the number of a block that was started after the last, 0 if there is
// none. Usually it is the next number. If messages were deleted, whole blocks may be
// gone, so with all set it lists the files: each that was started since is fsynced, and of those
// before the first, each that may not be on the disk.
func (f *blocks) newer(all bool) (int, error) {
	if f.last != nil && !all {
		_, err := os.Stat(f.block(f.number + 1))
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return f.number + 1, err
	}
	found, err := filepath.Glob(f.pattern)
	next, newest := 0, 0
	for _, path := range found {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
		if err != nil || n <= f.number {
			continue
		}
		f.dir, newest = filepath.Dir(path), max(newest, n)
		info, err := os.Stat(path)
		if next == 0 || n < next {
			if f.last != nil || err == nil && time.Since(info.ModTime()) < unsynced {
				next = n
			}
		}
	}
	return cmp.Or(next, newest), err
}

// advance fsyncs and closes the last block and continues with a newer one.
func (f *blocks) advance(next *os.File, number int) error {
	if f.last != nil {
		if err := errors.Join(f.last.Sync(), f.scan(), f.last.Close()); err != nil {
			return errors.Join(err, next.Close())
		}
	}
	f.last, f.number, f.read = next, number, 0
	return f.syncDir()
}

func (f *blocks) block(n int) string { return filepath.Join(f.dir, strconv.Itoa(n)+".blk") }

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
