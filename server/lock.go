package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse means that another process has the data directory open. Two NATS
// servers on one store would overwrite each other's files.
var ErrInUse = errors.New("another process has the data directory open")

// lock locks a data directory until the file is closed or the process ends.
func lock(data string) (*os.File, error) { return lockBy(data, flock) }

// lockShared locks the keys in a data directory, which other brokers on the same external server may read, too.
func lockShared(data string) (*os.File, error) { return lockBy(data, flockShared) }

// lock locks the data directory before its keys are read: a key that is rotated meanwhile must not sign any more.
func (o Options) lock() (file *os.File, err error) {
	if o.NATS == "" {
		file, err = lock(o.Data)
	} else if file, err = lockShared(o.Data); err != nil && !errors.Is(err, ErrInUse) {
		return nil, nil //nolint:nilnil // it cannot be written, and nobody rotates a key in it
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Data, err)
	}
	return file, nil
}

// writable says why nothing can be written into the data directory; nil if it is full, of which the NATS server knows.
// Of a disk that became read-only the server knows only once it has written to it.
func (s *Server) writable() error {
	if _, err := s.lock.WriteAt([]byte("\n"), 0); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

func lockBy(data string, flock func(*os.File) error) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(data, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		ownAs(file, data) //nolint:errcheck // only a user who may write the directory of another sees to that
	} else {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
