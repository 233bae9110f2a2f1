package server

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrInUse is for a data directory that another process has open: two servers on one store would
// write over each other.
var ErrInUse = errors.New("another process has the data directory open")

// lock keeps others from the store of a data directory until the file is closed, or the process
// is gone, however it went.
func lock(data string) (*os.File, error) {
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
