package main

import (
	"fmt"
	"net"
	"strconv"
)

// maxReplicas is the most that JetStream keeps of a stream.
const maxReplicas = 5

// checkPlaces checks where the broker listens, and how many replicas it has: faults that a start finds only later.
func (s *serve) checkPlaces() error {
	for _, l := range []struct {
		flag, address string
		least         int // -1 listens on any free port
	}{
		{"listen", s.Listen, -1}, {"websocket", s.Websocket, -1}, {"http", s.HTTP, 0}, {"macp", s.MACP, 0}, {"monitor", s.Monitor, 0},
	} {
		if l.address == "" && (l.flag != "listen" || s.NATS != "" || s.context != "") {
			continue
		}
		_, port, err := net.SplitHostPort(l.address)
		if err != nil {
			return fmt.Errorf("--%s: want HOST:PORT, such as 127.0.0.1:4222, not %q", l.flag, l.address)
		}
		number, err := strconv.Atoi(port)
		if err != nil && l.least == 0 { // it may have a name
			number, err = net.LookupPort("tcp", port)
		}
		if err != nil || number < l.least || number > 65535 {
			return fmt.Errorf("--%s %s: %q is not a port", l.flag, l.address, port)
		}
	}
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return fmt.Errorf("--replicas is 1 to %d", maxReplicas)
	}
	return nil
}
