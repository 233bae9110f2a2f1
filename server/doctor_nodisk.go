//go:build !linux && !darwin

package server

// freeBytes is not known on this system.
func freeBytes(string) (free uint64, ok bool) { return 0, false }
