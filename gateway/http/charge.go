package httpgateway

import (
	"context"
	"sync"
	"time"

	"github.com/parley-asp/parley/gateway"
)

// A spare is what a socket has free of charge: a frame a second, such as a pong, and a few at once. Who owes
// something is not closed out for keeping its connection alive.
type spare struct {
	mu   sync.Mutex
	free float64
	at   time.Time // when that was so
}

const mostSpare = 10

// take takes one, if there is one.
func (s *spare) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.at.IsZero() {
		s.free = mostSpare
	} else {
		s.free = min(mostSpare, s.free+now.Sub(s.at).Seconds())
	}
	s.at = now
	if s.free < 1 {
		return false
	}
	s.free--
	return true
}

// charge charges a frame that the broker does not charge for.
func (s *socket) charge(c gateway.Caller) error {
	if s.spare.take() {
		return nil
	}
	return c.Charge(1)
}

// pays charges a ping or a pong to the caller. One for which nobody pays ends the socket.
func (s *socket) pays(ctx context.Context) bool {
	if payer := s.payer.Load(); payer != nil {
		if s.charge(*payer) == nil {
			s.taken.conn.begins()
			return true
		}
	} else if s.early++; s.early <= maxEarly {
		return true
	}
	select {
	case s.frames <- incoming{limited: true}:
	case <-s.done:
	case <-ctx.Done():
	}
	return false
}
