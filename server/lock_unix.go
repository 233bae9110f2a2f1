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

func flock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
