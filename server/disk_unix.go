//go:build linux || darwin || freebsd

package server

import "golang.org/x/sys/unix"

// diskOf is how many bytes of a file system a user may still write, and how many it has.
func diskOf(path string) (free, size uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil || uint64(s.Bavail) > s.Blocks {
		return 0, 0, false
	}
	block := uint64(s.Bsize)                                        //nolint:gosec // not negative
	return uint64(s.Bavail) * block, uint64(s.Blocks) * block, true //nolint:unconvert // signed on FreeBSD
}
