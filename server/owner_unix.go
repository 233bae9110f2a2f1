//go:build unix

package server

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user and the group of a file.
func ownerOf(info fs.FileInfo) (user, group int, known bool) {
	of, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(of.Uid), int(of.Gid), true
}
