package server

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrInUse means that another process has the data directory open. Two NATS
// servers on one store would overwrite each other's files.
var ErrInUse = errors.New("another process has the data directory open")

// lock locks a data directory until the file is closed or the process ends.
func lock(data string) (*os.File, error) { return lockBy(data, flock) }

// lockShared locks the keys in a data directory, which other brokers on the same external server may read, too.
func lockShared(data string) (*os.File, error) { return lockBy(data, flockShared) }

func lockBy(data string, flock func(*os.File) error) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
