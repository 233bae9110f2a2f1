package broker

import (
	"errors"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// errNoStranger means that an act which waited as a stranger's belongs in its session's queue.
var errNoStranger = errors.New("the sender takes part in the session")

// fromStranger judges a stranger's act as one in no session, by the same order of checks.
func (b *Broker) fromStranger(m *performatives.Message, signed func() error) error {
	err := b.timely(m.Timestamp)
	if err == nil {
		err = checkBody(m)
	}
	if forged := signed(); forged != nil {
		return forged
	}
	if err != nil {
		return err
	}
	return session.NoSuchSession()
}
