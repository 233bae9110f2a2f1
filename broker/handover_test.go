package broker_test

import (
	"bytes"
	"context"
	"fmt"
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
	silent := "silent"
	for n := 0; cluster.OwnersAmong([]string{here.Options.ID, silent}).Of(s.ID) != silent; n++ {
		silent = fmt.Sprint("silent", n)
	}
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	records, err := js.KeyValue(t.Context(), api.BrokersBucket)
	testkit.Must(t, err)
	unread, err := nc.SubscribeSync(api.Forwarded(silent) + api.AllSubmits)
	testkit.Must(t, err)
	lives, stop := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		own, err := records.Watch(lives, here.Options.ID)
		if err != nil {
			t.Error(err)
			return
		}
		for record := range own.Updates() { // each heartbeat of the broker that is there is one of the silent one's
			if record == nil {
				continue
			}
			if _, err := records.Put(lives, silent, record.Value()); err != nil {
				if lives.Err() == nil {
					t.Error(err)
				}
				return
			}
		}
	})
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
	beating.Wait()
	for { // its record stops too, and acts are judged here again
		if code, _ := submit("{}"); code == "400" {
			break
		}
	}
	at.close(here)
}
