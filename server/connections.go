package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/server/embedded"
)

// allConnections exceeds the connections of one user on one server.
const allConnections = 1 << 14

// connections closes client connections on every server of a cluster, through
// the system account: it asks all servers for a user's connections, and closes
// those that each reply lists.
type connections struct {
	nc      *nats.Conn
	replies string // subject prefix; the last token is a broker's ID, or all
	ignored string // reply subject without a subscriber
}

// all selects every connection of a user instead of one broker's.
const all = "all"

func openConnections(nc *nats.Conn, log *zap.Logger) (connections, error) {
	c := connections{nc, nc.NewInbox() + ".", nc.NewInbox()}
	_, err := nc.Subscribe(c.replies+"*", func(m *nats.Msg) {
		if err := c.closeListed(m.Data, strings.TrimPrefix(m.Subject, c.replies)); err != nil {
			log.Error("cannot close connections", zap.Error(err))
		}
	})
	if err != nil {
		return c, err
	}
	return c, nc.Flush()
}

// closeUser closes every connection of a user.
func (c connections) closeUser(user string) error { return c.closeBroker(user, all) }

// closeBroker closes the connections that one broker made as a user.
func (c connections) closeBroker(user, broker string) error {
	request, err := json.Marshal(server.ConnzOptions{User: user, Username: true, Limit: allConnections})
	if err != nil {
		return err
	}
	return c.nc.PublishRequest(embedded.FindConnections, c.replies+broker, request)
}

// closeListed closes the connections in one server's reply that belong to a
// broker, or all of them. The server ignores a close request that has no reply
// subject. Its reply is empty, or reports that the connection is gone.
func (c connections) closeListed(reply []byte, broker string) error {
	var found struct {
		Server server.ServerInfo `json:"server"`
		Data   *server.Connz     `json:"data"`
		Error  *server.ApiError  `json:"error"`
	}
	if err := json.Unmarshal(reply, &found); err != nil {
		return err
	}
	if found.Error != nil {
		return found.Error
	}
	if found.Data == nil {
		return nil
	}
	for _, conn := range found.Data.Conns {
		if broker != all && !strings.HasSuffix(conn.Name, " "+broker) {
			continue
		}
		request, err := json.Marshal(server.KickClientReq{CID: conn.Cid})
		if err != nil {
			return err
		}
		if err := c.nc.PublishRequest(fmt.Sprintf(embedded.CloseConnection, found.Server.ID), c.ignored, request); err != nil {
			return err
		}
	}
	return nil
}

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
