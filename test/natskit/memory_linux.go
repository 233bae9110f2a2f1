package natskit

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

const (
	memory      = "/dev/shm"
	memoryMagic = 0x01021994 // TMPFS_MAGIC
	noexec      = 8          // ST_NOEXEC: tests run what they build
	enough      = 4 << 30    // bytes that are free
)

// The stores of tests are in memory where there is room, unless TMPDIR names another place: on a disk, a fifth of the
// CPU of the broker's tests goes into creating files. A process that is killed loses nothing of them either.
// Benchmarks measure the disk.
func init() {
	if os.Getenv("TMPDIR") != "" || slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.bench") }) {
		return
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || fs.Type != memoryMagic || fs.Flags&noexec != 0 {
		return
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < enough { //nolint:gosec // no size is negative
		return
	}
	if err := os.Setenv("TMPDIR", memory); err != nil {
		panic(err)
	}
}
