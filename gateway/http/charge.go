package httpgateway

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/gateway"
)

// What a socket has free of charge: a frame a second, such as a pong, and a few at once. Who owes something is not closed
// out for keeping its connection alive.
const (
	freeFrames = rate.Limit(1)
	freeAtOnce = 10
)

// charge charges a frame that the broker does not charge for.
func (s *socket) charge(c gateway.Caller) error {
	if s.free.Allow() {
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
