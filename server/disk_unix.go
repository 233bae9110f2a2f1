//go:build linux || darwin || freebsd

package server

import "golang.org/x/sys/unix"

// diskOf is how many bytes of a file system a user may still write, and how many it has.
func diskOf(path string) (free, size uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, 0, false
	}
	block, left := uint64(s.Bsize), uint64(s.Bavail) //nolint:gosec,unconvert // not negative; signed on FreeBSD
	if left > s.Blocks {
		return 0, 0, false
	}
	return left * block, s.Blocks * block, true
}
