package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testbroker"
)

// A stored is a broker with one paused session, and a hand in its streams.
type stored struct {
	*testing.T
	b    *testbroker.Broker
	ctx  context.Context //nolint:containedctx // the test's own
	js   jetstream.JetStream
	deal performatives.SessionID
}

func newStore(t *testing.T) *stored {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w := &stored{T: t, b: testbroker.Start(t, testbroker.Options{Sync: time.Second}), ctx: ctx}
	buyer, seller := w.joins(alpha), w.joins(beta)
	w.b.Register("human://acme.com/alice")
	s, err := buyer.Invite(ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
	w.must(err)
	w.deal = s.ID()
	sells := seller.Session(s.ID())
	_, err = sells.Accept(ctx, "inv")
	w.must(err)
	_, err = sells.Propose(ctx, client.Proposal{Type: "x", Subject: "x", Terms: map[string]any{"price": 1}})
	w.must(err)
	_, err = s.Escalate(ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "too much"})
	w.must(err)
	w.js = w.jetStream(w.b)
	return w
}

// joins registers an agent and connects it.
func (w *stored) joins(a performatives.Agent) *client.Client {
	w.Helper()
	signer, err := performatives.NewSigner(w.b.Register(a))
	w.must(err)
	c, err := client.Connect(w.ctx, w.b.URL, a, client.Key(signer))
	w.must(err)
	w.Cleanup(func() { c.Close() })
	return c
}

// asBroker is the broker's own login.
func (w *stored) asBroker(b *testbroker.Broker) nats.Option {
	w.Helper()
	login, err := nats.NkeyOptionFromSeed(b.Data + "/" + server.BrokerSeed)
	w.must(err)
	return login
}

func (w *stored) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// verify is parley session verify --all: what it finds, and whether all is in order.
func (w *stored) verify(settle time.Duration) (said string, ok bool) {
	w.Helper()
	return w.parley("session", "verify", "--all", "--url", w.b.URL, "--data", w.b.Data, "--settle", settle.String())
}

// parley runs a command: what it says, and whether it was done.
func (w *stored) parley(args ...string) (said string, ok bool) {
	w.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(w.ctx)
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String(), err == nil
}

// last is the last message of a subject.
func (w *stored) last(stream, subject string) *jetstream.RawStreamMsg {
	w.Helper()
	s, err := w.js.Stream(w.ctx, stream)
	w.must(err)
	m, err := s.GetLastMsgForSubject(w.ctx, subject)
	w.must(err)
	return m
}

func (w *stored) drop(stream, subject string) {
	w.Helper()
	s, err := w.js.Stream(w.ctx, stream)
	w.must(err)
	w.must(s.DeleteMsg(w.ctx, w.last(stream, subject).Sequence))
}

// unlist takes all of a session's lines out of the list.
func (w *stored) unlist(id performatives.SessionID) {
	w.Helper()
	s, err := w.js.Stream(w.ctx, api.IndexStream)
	w.must(err)
	w.must(s.Purge(w.ctx, jetstream.WithPurgeSubject(api.Index(id))))
}

func (w *stored) put(subject string, data []byte) {
	w.Helper()
	_, err := w.js.Publish(w.ctx, subject, data)
	w.must(err)
}

// Issue 4: verify --all holds what is derived against the transcripts. Each thing is broken in
// the stored, and found; before that, nothing is.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	item := func(w *stored) (subject string, item map[string]any) {
		escalation := w.last(api.SessionsStream, api.Session(w.deal))
		var entry struct{ MessageID string }
		w.must(json.Unmarshal(escalation.Data, &entry))
		subject = api.Escalation("acme.com", "high", entry.MessageID)
		w.must(json.Unmarshal(w.last(api.EscalationsStream, subject).Data, &item))
		return subject, item
	}
	for name, c := range map[string]struct {
		breaks func(*stored)
		want   string
	}{
		"nothing":                    {func(*stored) {}, ""},
		"a copy is missing":          {func(w *stored) { w.drop(api.InboxStream, api.Inbox(beta, w.deal)) }, "inbox of " + string(beta) + ": entry 3 is missing"},
		"a copy twice":               {func(w *stored) { s := api.Inbox(beta, w.deal); w.put(s, w.last(api.InboxStream, s).Data) }, "it holds entry 3 twice"},
		"a copy of what is not said": {func(w *stored) { w.put(api.Inbox(beta, w.deal), []byte("{}")) }, "is no entry of the transcript"},
		"a copy for nobody": {func(w *stored) {
			w.put(api.Inbox("agent://gizmo.io/gamma", w.deal), w.last(api.InboxStream, api.Inbox(beta, w.deal)).Data)
		}, "inbox of agent://gizmo.io/gamma: it holds entry 3, and nothing"},
		"one's own act": {func(w *stored) {
			w.put(api.Inbox(alpha, w.deal), w.last(api.InboxStream, api.Inbox(beta, w.deal)).Data)
		}, "it holds entry 3, which is not for " + string(alpha)},
		"copies in another order": {func(w *stored) {
			s := api.Inbox(alpha, w.deal) // entries 1 and 2
			second := w.last(api.InboxStream, s)
			w.drop(api.InboxStream, s)
			first := w.last(api.InboxStream, s)
			w.drop(api.InboxStream, s)
			w.put(s, second.Data)
			w.put(s, first.Data)
		}, "it holds entry 1 after entry 2"},
		"no timer":             {func(w *stored) { w.drop(api.TimersStream, "asp.timer.at."+string(w.deal)) }, "timer: there is none; the next deadline is"},
		"no line in the list":  {func(w *stored) { w.unlist(w.deal) }, "index: the session is not in the list"},
		"another state listed": {func(w *stored) { w.put(api.Index(w.deal), []byte(`{"state":"CLOSED","participants":[],"entries":9}`)) }, "index: the list says CLOSED; the transcript, ESCALATED"},
		"other parties listed": {func(w *stored) {
			w.put(api.Index(w.deal), []byte(`{"state":"ESCALATED","participants":[],"entries":9}`))
		}, "index: the list names ; the transcript, "},
		"no item":                {func(w *stored) { s, _ := item(w); w.drop(api.EscalationsStream, s) }, "is not in the escalation inbox"},
		"an item decided":        {func(w *stored) { s, i := item(w); i["status"] = "approved"; w.put(s, asJSON(w, i)) }, "is shown as approved"},
		"an item of nothing":     {func(w *stored) { s, i := item(w); i["escalationId"] = "stray"; w.put(s+"x", asJSON(w, i)) }, "escalation stray of session"},
		"an entry nobody signed": {func(w *stored) { w.put(api.Session(w.deal), w.last(api.SessionsStream, api.Session(w.deal)).Data) }, "sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStore(t)
			if said, ok := w.verify(settledWithin); !ok {
				t.Fatalf("before anything is broken:\n%s", said)
			}
			c.breaks(w)
			said, ok := w.verify(0)
			if ok != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("ok %t, said:\n%s\nwant %q", ok, said, c.want)
			}
		})
	}
}

func asJSON(w *stored, v any) []byte {
	w.Helper()
	data, err := json.Marshal(v)
	w.must(err)
	return data
}
