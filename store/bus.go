package store

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// A Bus is the store's connection, for messages that need not last. The server disconnects
// who sends a subject of more than 4 KiB, so a Bus sends none that is nearly so long.
type Bus struct {
	conn *nats.Conn
	log  *zap.Logger
}

// Bus is the store's connection, for messages that need not last.
func (s *Store) Bus() Bus { return Bus{s.nc, s.o.Log} }

const longestSubject = 1 << 10

var errSubject = errors.New("the subject is too long")

// Publish publishes a message to whoever listens.
func (b Bus) Publish(subject string, data []byte) error {
	if len(subject) > longestSubject {
		return errSubject
	}
	return b.conn.Publish(subject, data)
}

// Request asks, and waits for the first answer.
func (b Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if len(subject) > longestSubject {
		return nil, errSubject
	}
	reply, err := b.conn.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return reply.Data, nil
}

// Call sends a request with headers, and waits for an answer, whatever it is.
func (b Bus) Call(ctx context.Context, subject string, header map[string][]string, data []byte) error {
	if len(subject) > longestSubject {
		return errSubject
	}
	_, err := b.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: header, Data: data})
	return err
}

// Listen answers what is asked on a subject until it is stopped.
func (b Bus) Listen(subject string, answer func([]byte) []byte) (stop func(), err error) {
	s, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		if err := m.Respond(answer(m.Data)); err != nil {
			b.log.Debug("reply not sent", zap.Error(err))
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Unsubscribe() }, nil // fails only on a connection that is closed
}
