//go:build !unix

package server

import "io/fs"

// ownerOf knows nobody: a file has the owner that its directory gives it.
func ownerOf(fs.FileInfo) (user, group int, known bool) { return 0, 0, false }
