package broker_test

import (
	"testing"
	"time"

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
	items, err := w.js.Stream(t.Context(), api.EscalationsStream)
	testkit.Must(t, err)
	stored := func(subject string) bool {
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); { // it follows the answer
			if _, err := items.GetLastMsgForSubject(t.Context(), subject); err == nil {
				return true
			}
		}
		return false
	}
	first, id := escalates()
	if !stored(first) {
		t.Fatal("there is no item")
	}
	s.Say(alice, "INFORM", `{"type":"resolution","data":{"escalationId":"`+id+`","decision":"guidance"}}`)
	_, err = w.js.Publish(t.Context(), first, []byte("not an item"))
	testkit.Must(t, err)
	if second, _ := escalates(); !stored(second) {
		t.Error("the second item is not stored")
	}
}
