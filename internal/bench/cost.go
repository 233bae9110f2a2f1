package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
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

// cpuOfAll returns the CPU time of several processes.
func cpuOfAll(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		one, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// memoryOfAll returns the resident memory of processes, in MiB.
func memoryOfAll(pids []int) (sum float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return 0, fmt.Errorf("process %d has no resident memory", pid)
		}
		kib, err := strconv.ParseFloat(string(fields[0]), 64)
		if err != nil {
			return 0, err
		}
		sum += kib / 1024
	}
	return sum, nil
}
