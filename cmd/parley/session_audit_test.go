package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A stored is a broker with one paused session, and a hand in its streams.
type stored struct {
	*testkit.World
	js   jetstream.JetStream
	deal performatives.SessionID
}

func newStore(t *testing.T) *stored {
	t.Helper()
	w := &stored{}
	w.starts(t, testkit.Options{})
	buyer, seller := w.Client(alpha), w.Client(beta)
	w.Principal("human://acme.com/alice")
	s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
	testkit.Must(t, err)
	w.deal = s.ID()
	sells := seller.Session(s.ID())
	_, err = sells.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = sells.Propose(w.Ctx, client.Proposal{Type: "x", Subject: "x", Terms: map[string]any{"price": 1}})
	testkit.Must(t, err)
	_, err = s.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "too much"})
	testkit.Must(t, err)
	return w
}

// starts runs a broker, or replaces the one that runs, and opens its streams with its login.
func (w *stored) starts(t testing.TB, o testkit.Options) {
	t.Helper()
	o.Sync = time.Second
	w.World = testkit.NewWorld(t, o)
	login, err := nats.NkeyOptionFromSeed(filepath.Join(w.Data, server.BrokerLogin))
	testkit.Must(t, err)
	w.js, err = jetstream.New(w.Plain(login))
	testkit.Must(t, err)
}

// verify is parley session verify --all: what it finds, and whether all is in order.
func (w *stored) verify(within time.Duration) (said string, ok bool) {
	w.Helper()
	return w.parley("session", "verify", "--all", "--url", w.URL, "--data", w.Data, "--applied-within", within.String())
}

// parley runs a command: what it says, and whether it was done.
func (w *stored) parley(args ...string) (said string, ok bool) {
	w.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(w.Ctx)
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String(), err == nil
}

// last is the last message of a subject.
func (w *stored) last(stream, subject string) *jetstream.RawStreamMsg {
	w.Helper()
	s, err := w.js.Stream(w.Ctx, stream)
	testkit.Must(w, err)
	m, err := s.GetLastMsgForSubject(w.Ctx, subject)
	testkit.Must(w, err)
	return m
}

func (w *stored) drop(stream, subject string) {
	w.Helper()
	s, err := w.js.Stream(w.Ctx, stream)
	testkit.Must(w, err)
	testkit.Must(w, s.DeleteMsg(w.Ctx, w.last(stream, subject).Sequence))
}

// unlist takes all of a session's lines out of the list.
func (w *stored) unlist(id performatives.SessionID) {
	w.Helper()
	s, err := w.js.Stream(w.Ctx, api.IndexStream)
	testkit.Must(w, err)
	testkit.Must(w, s.Purge(w.Ctx, jetstream.WithPurgeSubject(api.Index(id))))
}

func (w *stored) put(subject string, data []byte) {
	w.Helper()
	_, err := w.js.Publish(w.Ctx, subject, data)
	testkit.Must(w, err)
}

// Issue 4: verify --all holds what is derived against the transcripts. Each thing is broken in
// the store, and found; before that, nothing is.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	item := func(w *stored) (subject string, item map[string]any) {
		escalation := w.last(api.SessionsStream, api.Session(w.deal))
		var entry struct{ MessageID string }
		testkit.Must(w, json.Unmarshal(escalation.Data, &entry))
		subject = api.Escalation("acme.com", "high", entry.MessageID)
		testkit.Must(w, json.Unmarshal(w.last(api.EscalationsStream, subject).Data, &item))
		return subject, item
	}
	for name, c := range map[string]struct {
		breaks func(*stored)
		want   string
	}{
		"nothing":                    {func(*stored) {}, ""},
		"a copy is missing":          {func(w *stored) { w.drop(api.InboxStream, api.Inbox(beta, w.deal)) }, "inbox of " + string(beta) + ": entry 3 is missing"},
		"a copy twice":               {func(w *stored) { s := api.Inbox(beta, w.deal); w.put(s, w.last(api.InboxStream, s).Data) }, "it has entry 3 twice"},
		"a copy of what is not said": {func(w *stored) { w.put(api.Inbox(beta, w.deal), []byte("{}")) }, "is not an entry of the transcript"},
		"a copy for nobody": {func(w *stored) {
			w.put(api.Inbox("agent://gizmo.io/gamma", w.deal), w.last(api.InboxStream, api.Inbox(beta, w.deal)).Data)
		}, "inbox of agent://gizmo.io/gamma: it has entry 3, but no entry"},
		"one's own act": {func(w *stored) {
			w.put(api.Inbox(alpha, w.deal), w.last(api.InboxStream, api.Inbox(beta, w.deal)).Data)
		}, "it has entry 3, which is not for " + string(alpha)},
		"copies in another order": {func(w *stored) {
			s := api.Inbox(alpha, w.deal) // entries 1 and 2
			second := w.last(api.InboxStream, s)
			w.drop(api.InboxStream, s)
			first := w.last(api.InboxStream, s)
			w.drop(api.InboxStream, s)
			w.put(s, second.Data)
			w.put(s, first.Data)
		}, "it has entry 1 after entry 2"},
		"no timer":             {func(w *stored) { w.drop(api.TimersStream, "asp.timer.at."+string(w.deal)) }, "timer: there is none; the next deadline is"},
		"no line in the list":  {func(w *stored) { w.unlist(w.deal) }, "index: the session is not in the list"},
		"another state listed": {func(w *stored) { w.put(api.Index(w.deal), []byte(`{"state":"CLOSED","participants":[],"entries":9}`)) }, "index: the list has CLOSED; the transcript has ESCALATED"},
		"other parties listed": {func(w *stored) {
			w.put(api.Index(w.deal), []byte(`{"state":"ESCALATED","participants":[],"entries":9}`))
		}, "index: the list has the participants ; the transcript has "},
		"no item":                {func(w *stored) { s, _ := item(w); w.drop(api.EscalationsStream, s) }, "is not in the escalation inbox"},
		"an item decided":        {func(w *stored) { s, i := item(w); i["status"] = "approved"; w.put(s, asJSON(w, i)) }, "is listed as approved"},
		"an item of nothing":     {func(w *stored) { s, i := item(w); i["escalationId"] = "stray"; w.put(s+"x", asJSON(w, i)) }, "escalation stray of session"},
		"an entry nobody signed": {func(w *stored) { w.put(api.Session(w.deal), w.last(api.SessionsStream, api.Session(w.deal)).Data) }, "sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStore(t)
			if said, ok := w.verify(auditWait); !ok {
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

// verify --all goes on after a session that cannot be verified.
func TestVerifyGoesOn(t *testing.T) {
	t.Parallel()
	w := newStore(t)
	buyer := w.Client(alpha)
	other, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
	testkit.Must(t, err)
	w.put("asp.agent.=zz.inbox."+string(w.deal), []byte("{}")) // the inbox of no principal
	said, ok := w.verify(auditWait)
	if ok || !strings.Contains(said, "ERROR  "+string(w.deal)+"  not verified: ") || !strings.Contains(said, "ok     "+string(other.ID())) ||
		!strings.Contains(said, "1 of 2 transcripts have faults") {
		t.Errorf("ok %t, said:\n%s", ok, said)
	}
}

func asJSON(w *stored, v any) []byte {
	w.Helper()
	data, err := json.Marshal(v)
	testkit.Must(w, err)
	return data
}
