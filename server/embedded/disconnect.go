package embedded

import (
	"fmt"
	"math"

	"github.com/nats-io/nats-server/v2/server"
)

// Connections counts the open connections with this user name.
func (s *Server) Connections(user string) (int, error) {
	open, err := s.nats.Connz(&server.ConnzOptions{User: user, Username: true, Limit: math.MaxInt32})
	if err != nil {
		return 0, fmt.Errorf("embedded: %w", err)
	}
	return len(open.Conns), nil
}

// Disconnect closes all connections with this user name, which is the one in the JWT of their
// login (login.Identity.User). A login that is in progress may connect afterwards, so call it
// again.
func (s *Server) Disconnect(user string) error {
	var found []uint64
	for {
		page, err := s.nats.Connz(&server.ConnzOptions{User: user, Username: true, Offset: len(found)})
		if err != nil {
			return fmt.Errorf("embedded: %w", err)
		}
		for _, c := range page.Conns {
			found = append(found, c.Cid)
		}
		if len(page.Conns) < page.Limit {
			break
		}
	}
	for _, id := range found {
		// The only error is that the connection is gone already.
		_ = s.nats.DisconnectClientByID(id)
	}
	return nil
}
