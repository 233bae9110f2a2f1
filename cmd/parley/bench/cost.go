package bench

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"os"
	"strconv"
	"time"
)

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

// A Machine is what this machine takes for what every broker has to do. Times are medians.
type Machine struct {
	Verify float64 `json:"verifyMicros"` // one Ed25519 signature of 1 KiB
	Fsync  float64 `json:"fsyncMicros"`  // after 1 KiB was written to a file in the directory of the stores
}

// measureMachine takes a tenth of a second or two.
func measureMachine(dir string) (m Machine, err error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return m, err
	}
	data := make([]byte, 1<<10)
	signature := ed25519.Sign(private, data)
	file, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return m, err
	}
	defer file.Close() //nolint:errcheck // nobody reads it
	m.Verify, err = median(func() error { ed25519.Verify(public, data, signature); return nil })
	if err != nil {
		return m, err
	}
	m.Fsync, err = median(func() error {
		if _, err := file.Write(data); err != nil {
			return err
		}
		return file.Sync()
	})
	return m, err
}

// median is the median time of a step, in microseconds.
func median(step func() error) (float64, error) {
	all := make([]time.Duration, 501)
	for i := range all {
		start := time.Now()
		if err := step(); err != nil {
			return 0, err
		}
		all[i] = time.Since(start)
	}
	return spread(all).P50, nil
}
