//go:build linux || darwin

package server

import "golang.org/x/sys/unix"

// freeBytes is how much room a user has on the disk of a directory.
func freeBytes(dir string) (free uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:gosec // it is not below zero
}
