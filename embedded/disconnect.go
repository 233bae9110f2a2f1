package embedded

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// Disconnect closes every connection that the server knows by this user name, which is that
// of the JWT that a login was answered with (login.Identity.User). A login that is under way
// becomes a connection afterwards; look again.
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
		// The one error there is says that it is gone already.
		_ = s.nats.DisconnectClientByID(id)
	}
	return nil
}
