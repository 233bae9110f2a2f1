package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// TestForwarded is one broker as another one sees it that forwards acts to it.
// Whoever asked has an acceptance from the owner, and whoever handed it on is told
// so. That one has the answer itself where it is a refusal, where the owner cannot
// judge, or does not know who asked (brokers before this one do not say).
func TestForwarded(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	owner, nc := at.OpenBroker()
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	listen := func(subject string) *nats.Subscription {
		sub, err := nc.SubscribeSync(subject)
		testkit.Must(t, err)
		return sub
	}
	replies := nc.NewInbox() + "."
	between, asker := listen(replies+"*"), listen(nc.NewInbox())
	hand := func(number, asker, act string) {
		m := &nats.Msg{Subject: api.Forwarded(owner.Options.ID) + api.Submit(alpha, s.ID), Reply: replies + number, Header: nats.Header{}, Data: []byte(act)}
		if asker != "" {
			m.Header.Set(api.AskerHeader, asker)
		}
		testkit.Must(t, nc.PublishMsg(m))
	}
	hear := func(who *nats.Subscription, subject, says string) {
		t.Helper()
		m, err := who.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		if m.Subject != subject || !bytes.Contains(m.Data, []byte(says)) {
			t.Errorf("received %s %s, not %s %s", m.Subject, m.Data, subject, says)
		}
	}
	refused := string(session.MalformedEnvelope)
	hand("a1", asker.Subject, observation(s.ID))
	hear(asker, asker.Subject, `"accepted":true`)
	hear(between, replies+"-", "a1")
	hand("a2", asker.Subject, "{}")
	hear(between, replies+"a2", refused)
	hand("a3", "", "{}")
	hear(between, replies+"a3", refused)

	letGo := owner.Command.Hold(s.ID)
	for range broker.MaxQueue {
		hand("b", "", "{}")
	}
	hand("a4", asker.Subject, "{}")
	hear(between, replies+"a4", string(session.Unavailable))
	letGo()
	if m, err := asker.NextMsg(time.Millisecond); err == nil {
		t.Errorf("the asker received %s", m.Data)
	}
	at.close(owner)
}

func observation(id performatives.SessionID) string {
	return fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":"OBSERVE","content":{"body":{"subject":"weather"}}}`,
		uuid.Must(uuid.NewV7()), id, time.Now().UTC().Format(time.RFC3339Nano), alpha)
}

// TestSilentOwner has a broker that is there, as its record says, and answers
// nothing. It may come to an act yet that another broker judges meanwhile. So what
// is allowed there is accepted there, and what is not is asked again later: the two
// could differ in what they refuse. Only the first act waits for it.
func TestSilentOwner(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	here, nc := at.OpenBroker()
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	silent, stop := pretend(t, here, nc, s.ID)
	unread, err := nc.SubscribeSync(api.Forwarded(silent) + api.AllSubmits)
	testkit.Must(t, err)
	submit := func(act string) (code string, m *nats.Msg) {
		t.Helper()
		m, err := nc.Request(api.Submit(alpha, s.ID), []byte(act), time.Minute)
		testkit.Must(t, err)
		return m.Header.Get(api.ErrorCodeHeader), m
	}
	for forwarded(here) == 0 { // until the silent one is known, acts are judged here
		if code, _ := submit(observation(s.ID)); code == "" && forwarded(here) > 0 {
			t.Fatal("what waited for its owner was accepted after all")
		}
	}
	known := time.Now()
	if code, m := submit("{}"); code != "503" {
		t.Errorf("a refusal is the last word, though the owner may still hear the act: %s", m.Data)
	}
	if m, err := testkit.Request(nc, api.Submit(alpha, s.ID), []byte(observation(s.ID))); err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
		t.Errorf("not accepted: %v %v", m, err)
	}
	probes := int(time.Since(known) / (10 * time.Second)) // of a circuit breaker that is open: none, unless this machine is very slow
	if handed, _, err := unread.Pending(); err != nil || handed < 1 || handed > 1+probes {
		t.Errorf("%d acts were forwarded: %v", handed, err)
	}
	stop()
	for { // its record stops too, and acts are judged here again
		if code, _ := submit("{}"); code == "400" {
			break
		}
	}
	at.close(here)
}

// pretend makes records of a broker that owns a session, until it is told to stop.
func pretend(t *testing.T, here *server.Broker, nc *nats.Conn, id performatives.SessionID) (name string, stop func()) {
	t.Helper()
	name = "pretended"
	for n := 0; cluster.OwnersAmong([]string{here.Options.ID, name}).Of(id) != name; n++ {
		name = fmt.Sprint("pretended", n)
	}
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	records, err := js.KeyValue(t.Context(), api.BrokersBucket)
	testkit.Must(t, err)
	lives, die := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		own, err := records.Watch(lives, here.Options.ID)
		if err != nil {
			t.Error(err)
			return
		}
		for record := range own.Updates() { // each heartbeat of the broker that is there is one of this one's
			if record == nil {
				continue
			}
			if _, err := records.Put(lives, name, record.Value()); err != nil {
				if lives.Err() == nil {
					t.Error(err)
				}
				return
			}
		}
	})
	return name, func() { die(); beating.Wait() }
}

// TestAnswerLost has an owner that answers where the asker does not hear it: the link between their
// servers is cut. The asker sends the same act again, and is answered by way of the broker that it
// reaches.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	here, nc := at.OpenBroker()
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	owner, stop := pretend(t, here, nc, s.ID)
	defer stop()
	answers, err := nc.Subscribe(api.Forwarded(owner)+api.AllSubmits, func(m *nats.Msg) {
		if m.Header.Get(api.AskerHeader) == "" {
			m.Respond(m.Data) //nolint:errcheck // nobody waits then
			return
		}
		end := strings.LastIndexByte(m.Reply, '.') + 1
		nc.Publish(m.Reply[:end]+"-", []byte(m.Reply[end:])) //nolint:errcheck // likewise
	})
	testkit.Must(t, err)
	testkit.Must(t, nc.Flush())
	testkit.Eventually(t, "acts are forwarded", func() bool {
		_, err := nc.Request(api.Submit(alpha, s.ID), []byte("{}"), time.Second)
		return err != nil && forwarded(here) > 0
	})
	m, err := nc.Request(api.Submit(alpha, s.ID), []byte("{}"), testkit.Patience)
	testkit.Must(t, err)
	if string(m.Data) != "{}" {
		t.Errorf("answered %s", m.Data)
	}
	testkit.Must(t, answers.Unsubscribe())
	stop()
	at.close(here)
}
