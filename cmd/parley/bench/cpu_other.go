//go:build !unix

package bench

import (
	"errors"
	"time"
)

// cpuOf fails: the benchmark compares what processes cost, which it can only read on Unix.
func cpuOf(int) (time.Duration, error) {
	return 0, errors.New("the benchmark reads the processor time of processes on Unix only")
}

func ownCPU() time.Duration { return 0 }
