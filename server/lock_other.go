//go:build !unix

package server

import "os"

func unlock(file *os.File) { file.Close() } //nolint:errcheck // nothing was written

// flock does nothing on systems without flock(2): the operator must run only one process.
func flock(*os.File) error { return nil }

func flockShared(*os.File) error { return nil }

// syncDir does nothing: a directory cannot be opened for it.
func syncDir(string) error { return nil }
