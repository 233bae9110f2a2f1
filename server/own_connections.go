package server

import (
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// ownConnections are those of a broker to the NATS server, in the order in which they were made.
type ownConnections struct {
	mu  sync.Mutex
	all []*nats.Conn
}

func (c *ownConnections) add(nc *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, nc)
}

func (c *ownConnections) list() []*nats.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *ownConnections) close() {
	for _, nc := range c.list() {
		nc.Close()
	}
}

// reconnect takes each connection to another server, if it knows one.
func (c *ownConnections) reconnect(log *zap.Logger) {
	for _, nc := range c.list() {
		if servers := nc.Servers(); len(servers) > 1 {
			log.Warn("the NATS server acknowledges nothing; connecting to another", zap.String("server", nc.ConnectedUrlRedacted()), zap.Int("known", len(servers)))
			nc.ForceReconnect() //nolint:errcheck // a closed one stays closed
		}
	}
}
