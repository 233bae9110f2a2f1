package node

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/embedded"
)

// allConnections is more than one principal has on one server.
const allConnections = 1 << 14

// kicks disconnects a user from every server of a cluster, over a connection to the system
// account: it asks all of them for the user's connections and has those that are named in the
// answers closed, as the answers come.
func kicks(nc *nats.Conn, log *zap.Logger) (disconnect func(user string) error, err error) {
	answers := nc.NewInbox()
	_, err = nc.Subscribe(answers, func(m *nats.Msg) {
		if err := kick(nc, m.Data, answers+".done"); err != nil {
			log.Error("connections are not closed", zap.Error(err))
		}
	})
	if err != nil {
		return nil, err
	}
	return func(user string) error {
		request, err := json.Marshal(server.ConnzOptions{User: user, Username: true, Limit: allConnections})
		if err != nil {
			return err
		}
		return nc.PublishRequest(embedded.FindConnections, answers, request)
	}, nc.Flush()
}

// kick closes the connections of one server's answer. A server does not hear a request that
// asks for no answer; the answer says nothing, or that the connection is gone already.
func kick(nc *nats.Conn, answer []byte, done string) error {
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
		request, err := json.Marshal(server.KickClientReq{CID: c.Cid})
		if err != nil {
			return err
		}
		if err := nc.PublishRequest(fmt.Sprintf(embedded.CloseConnection, found.Server.ID), done, request); err != nil {
			return err
		}
	}
	return nil
}
