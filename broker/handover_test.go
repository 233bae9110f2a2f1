package broker_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/wire"
)

// TestHandedOn is one broker as another one sees it that hands acts on to it.
// Whoever asked is answered by the home; whoever handed it on is told so, and has
// the answer itself where the home does not know who asked (brokers before this
// one do not say), or cannot judge.
func TestHandedOn(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	home, nc := at.open()
	w := fault.NewWitness(t, at.server.ClientURL())
	s := w.Open(alpha, beta)
	listen := func(subject string) *nats.Subscription {
		sub, err := nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	replies := nc.NewInbox() + "."
	between, asker := listen(replies+"*"), listen(nc.NewInbox())
	hand := func(number, asker string) {
		m := &nats.Msg{Subject: wire.HandedOn(home.ID()) + wire.Submit(alpha, s.ID), Reply: replies + number, Header: nats.Header{}, Data: []byte("{}")}
		if asker != "" {
			m.Header.Set(wire.AskerHeader, asker)
		}
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(who *nats.Subscription, subject, says string) {
		t.Helper()
		m, err := who.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != subject || !bytes.Contains(m.Data, []byte(says)) {
			t.Errorf("heard %s %s, not %s %s", m.Subject, m.Data, subject, says)
		}
	}
	refused := string(session.MalformedEnvelope)
	hand("a1", asker.Subject)
	hear(asker, asker.Subject, refused)
	hear(between, replies+"-", "a1")
	hand("a2", "")
	hear(between, replies+"a2", refused)

	letGo := home.Hold(s.ID)
	for range broker.MaxQueue {
		hand("b", "")
	}
	hand("a3", asker.Subject)
	hear(between, replies+"a3", string(session.Unavailable))
	letGo()
	if m, err := asker.NextMsg(time.Millisecond); err == nil {
		t.Errorf("the asker heard %s", m.Data)
	}
	at.close(home)
}
