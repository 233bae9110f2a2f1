//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	// The clock ID of a process, see clock_getcpuclockid(3).
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { //nolint:gosec // a pid has 22 bits
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
