package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server/sysmem"
)

// headroom is memory that nobody touches, so none is used. But the collector counts
// it as in use and comes when the heap is twice what is in use, so what acts leave
// behind is collected after that much more at least: a broker keeps little and throws
// much away, and the acts of a moment when the collector works are the slowest.
func headroom() []byte {
	for _, own := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := os.LookupEnv(own); set {
			return nil // somebody has decided
		}
	}
	return make([]byte, room(memory()))
}

// room is a 32nd of the memory that there is, within bounds.
func room(memory int64) int64 { return min(max(memory/32, 64<<20), 192<<20) }

// memory is what this process may have: the machine's, or what its container is
// limited to.
func memory() int64 {
	all := sysmem.Memory()
	limit, err := os.ReadFile("/sys/fs/cgroup/memory.max") // "max" where there is none
	if err != nil {
		return all
	}
	most, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64)
	if err != nil {
		return all
	}
	return min(all, most)
}
