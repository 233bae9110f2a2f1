package broker_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/internal/testkit"
)

// An inbox that cannot be written to holds up no other one: not for this entry, and not for
// those after it.
func TestOneInboxHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{})
	s := w.Open(alpha, beta, gamma)
	s.Delivered(beta, gamma)
	_, err := w.js.PublishMsg(t.Context(), &nats.Msg{
		Subject: api.Inbox(beta, s.ID), Data: []byte("{}"), Header: nats.Header{api.SequenceHeader: {"not a number"}},
	})
	testkit.Must(t, err)
	w.b.Down()
	w.b.Up() // it reads where the inboxes end
	for range 3 {
		s.Say(alpha, "OBSERVE", `{"subject":"x"}`)
	}
	s.Delivered(gamma)
}
