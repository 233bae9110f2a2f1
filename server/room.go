package server

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/parley-asp/parley/server/login"
)

// DefaultConnections is how many connections to the embedded NATS server one
// principal may have open.
const DefaultConnections = 128

// A room bounds the connections of each principal to the embedded NATS server. It
// asks the server only when the logins since the last count could exceed the bound.
type room struct {
	most  atomic.Int64
	count func(user string) (int, error) // open connections of a user

	mu     sync.Mutex
	logins map[string]int // by principal: counted connections, and logins since
}

func newRoom(most int, count func(user string) (int, error)) *room {
	r := &room{count: count, logins: map[string]int{}}
	r.set(most)
	return r
}

// set has another bound for logins from now on.
func (r *room) set(most int) { r.most.Store(int64(cmp.Or(most, DefaultConnections))) }

// admit refuses the login of a principal with too many connections. Operators and
// the broker have no bound.
func (r *room) admit(id login.Identity, publicKey string) error {
	most := int(r.most.Load())
	if most < 0 || id.Role != login.Principal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logins[id.Name] >= most {
		open, err := r.count(id.User(publicKey))
		if err != nil {
			return fmt.Errorf("cannot count the connections of %s: %w", id.Name, err)
		}
		r.logins[id.Name] = open
		if open >= most {
			return fmt.Errorf("%s has %d connections, which is the most", id.Name, open)
		}
	}
	r.logins[id.Name]++
	return nil
}
