package server

import (
	"fmt"
	"sync"

	"github.com/parley-asp/parley/server/login"
)

// DefaultConnections is how many connections to the embedded NATS server one
// principal may have open.
const DefaultConnections = 128

// A room bounds the connections of each principal to the embedded NATS server. It
// asks the server only when the logins since the last count could exceed the bound.
type room struct {
	most  int
	count func(user string) (int, error) // open connections of a user

	mu     sync.Mutex
	logins map[string]int // by principal: counted connections, and logins since
}

func newRoom(most int, count func(user string) (int, error)) *room {
	if most == 0 {
		most = DefaultConnections
	}
	return &room{most: most, count: count, logins: map[string]int{}}
}

// admit refuses the login of a principal with too many connections. Operators and
// the broker have no bound.
func (r *room) admit(id login.Identity, publicKey string) error {
	if r.most < 0 || id.Role != login.Principal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logins[id.Name] >= r.most {
		open, err := r.count(id.User(publicKey))
		if err != nil {
			return fmt.Errorf("cannot count the connections of %s: %w", id.Name, err)
		}
		r.logins[id.Name] = open
		if open >= r.most {
			return fmt.Errorf("%s has %d connections, which is the most", id.Name, open)
		}
	}
	r.logins[id.Name]++
	return nil
}
