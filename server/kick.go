package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/embedded"
)

// allConnections is more than one user has on one server.
const allConnections = 1 << 14

// kicks closes connections on every server of a cluster, over a connection to the system
// account: it asks all of them for a user's connections and has those that are named in the
// answers closed, as the answers come.
type kicks struct {
	nc      *nats.Conn
	answers string // before which of the connections are meant
	done    string // where nobody listens
}

// all, in place of a node's ID, means that all connections of a user are to go.
const all = "all"

func openKicks(nc *nats.Conn, log *zap.Logger) (kicks, error) {
	k := kicks{nc, nc.NewInbox() + ".", nc.NewInbox()}
	_, err := nc.Subscribe(k.answers+"*", func(m *nats.Msg) {
		if err := k.kick(m.Data, strings.TrimPrefix(m.Subject, k.answers)); err != nil {
			log.Error("connections are not closed", zap.Error(err))
		}
	})
	if err != nil {
		return k, err
	}
	return k, nc.Flush()
}

// user closes all that a user is connected with.
func (k kicks) user(user string) error { return k.node(user, all) }

// node closes what a node is connected with as one of its users.
func (k kicks) node(user, node string) error {
	request, err := json.Marshal(server.ConnzOptions{User: user, Username: true, Limit: allConnections})
	if err != nil {
		return err
	}
	return k.nc.PublishRequest(embedded.FindConnections, k.answers+node, request)
}

// kick closes the connections of one server's answer. A server does not hear a request that
// asks for no answer; the answer says nothing, or that the connection is gone already.
func (k kicks) kick(answer []byte, whose string) error {
	var found struct {
		Server server.ServerInfo `json:"server"`
		Data   *server.Connz     `json:"data"`
		Error  *server.ApiError  `json:"error"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return err
	}
	if found.Error != nil {
		return found.Error
	}
	if found.Data == nil {
		return nil
	}
	for _, c := range found.Data.Conns {
		if whose != all && !strings.HasSuffix(c.Name, " "+whose) {
			continue
		}
		request, err := json.Marshal(server.KickClientReq{CID: c.Cid})
		if err != nil {
			return err
		}
		if err := k.nc.PublishRequest(fmt.Sprintf(embedded.CloseConnection, found.Server.ID), k.done, request); err != nil {
			return err
		}
	}
	return nil
}
