//go:build unix

package server

import (
	"errors"
	"os"
	"syscall"
)

// unlock lets others have the directory at once, also while a process that was just forked
// still holds a copy of the file.
func unlock(file *os.File) {
	syscall.Flock(int(file.Fd()), syscall.LOCK_UN) //nolint:errcheck // closing it unlocks too
	file.Close()                                   //nolint:errcheck // nothing was written
}

// syncDir has the names in a directory on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func flock(file *os.File) error { return flockAs(file, syscall.LOCK_EX) }

// flockShared keeps out those who flock.
func flockShared(file *os.File) error { return flockAs(file, syscall.LOCK_SH) }

func flockAs(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
