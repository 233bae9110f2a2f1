package broker_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/test/testkit"
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

// An item of the escalation inbox that cannot be read holds up no other of its session.
func TestOneItemHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{})
	s := w.Open(alpha, beta)
	escalates := func() (subject, id string) {
		t.Helper()
		s.Say(alpha, "ESCALATE", asks)
		var view api.SessionView
		w.Call(api.SessionGet.Name, `{"sessionId":"`+string(s.ID)+`"}`, &view)
		id = string(view.Escalation.ID)
		return api.Escalation(alpha.Organisation(), "high", id), id
	}
	first, id := escalates()
	testkit.Stored(t, w.js, api.EscalationsStream, first)
	s.Say(alice, "INFORM", `{"type":"resolution","data":{"escalationId":"`+id+`","decision":"guidance"}}`)
	_, err := w.js.Publish(t.Context(), first, []byte("not an item"))
	testkit.Must(t, err)
	second, _ := escalates()
	testkit.Stored(t, w.js, api.EscalationsStream, second)
}
