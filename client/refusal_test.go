package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A refusal is typed, whichever call it answers.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	a, b := w.Client(alpha), w.Client(beta)
	ours, theirs := w.introduced(a, b)
	p := must(ours.Propose(w.Ctx, offer(5)))(t)
	nowhere := a.Session("019478a3-0001-7def-8a12-000000000001")

	act := func(_ client.Receipt, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		code session.Code
	}{
		{"one's own offer", act(ours.Accept(w.Ctx, p.ID)), session.OwnProposal},
		{"an offer that is not there", act(theirs.Accept(w.Ctx, "p9")), session.ProposalUnknown},
		{"a session that is not there", act(nowhere.Observe(w.Ctx, "x", nil)), session.UnknownSession},
		{"too large to send", act(ours.Observe(w.Ctx, "x", strings.Repeat("x", performatives.MaxEnvelope))), session.TooLarge},
		{"a field that is not there", act(theirs.Clarify(w.Ctx, p.ID, []client.Question{client.Ask("terms.storage", "how much?")})), session.SchemaInvalid},
		{"a place that is taken", act(ours.Observe(w.Ctx, "x", nil, client.LinkTo(performatives.Link{PreviousHash: performatives.NoHash}))), session.ChainConflict},
		{"a mode that is not there", invited(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}, Mode: "chess/1"})), session.ModeViolation},
		{"somebody who is not there", invited(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{"agent://nowhere.org/x"}})), session.UnknownAgent},
		{"a schema that is not there", read(a.Schema(w.Ctx, "nothing-v1")), session.SchemaUnsupported},
		{"a view of nothing", read(nowhere.View(w.Ctx)), session.UnknownSession},
		{"a transcript of nothing", read(nowhere.Transcript(w.Ctx)), session.UnknownSession},
	} {
		refusal, ok := errors.AsType[*session.Refusal](c.err)
		if !ok || refusal.Code != c.code || refusal.Message == "" || !errors.Is(c.err, client.Refused(c.code)) {
			t.Errorf("%s: the error is %v, want %s", c.name, c.err, c.code)
		}
		if errors.Is(c.err, client.Refused(session.RateLimited)) {
			t.Errorf("%s: matches another code", c.name)
		}
	}
	if state := w.state(ours); state != session.Conversing {
		t.Errorf("the session is %s after refusals, want CONVERSING", state)
	}
}

func invited(_ *client.Session, err error) error { return err }
func read[V any](_ V, err error) error           { return err }

// What cannot be sent is told before it is.
func TestWhatIsNoAct(t *testing.T) {
	t.Parallel()
	url, requests := scripted(t)
	a := must(client.Connect(t.Context(), url, alpha, client.Unsigned()))(t)
	defer a.Close()
	s := a.Session("019478a3-0001-7def-8a12-000000000001")
	for name, do := range map[string]func() (client.Receipt, error){
		"terms that are no object": func() (client.Receipt, error) { return s.Propose(t.Context(), client.Proposal{Terms: 5}) },
		"terms that are no JSON": func() (client.Receipt, error) {
			return s.Counter(t.Context(), "p", client.Proposal{Terms: make(chan int)})
		},
		"a note where none can be":   func() (client.Receipt, error) { return s.Observe(t.Context(), "x", nil, client.Note("n")) },
		"a reason where none can be": func() (client.Receipt, error) { return s.Observe(t.Context(), "x", nil, client.Because("r")) },
		"an assessment of a remark":  func() (client.Receipt, error) { return s.Observe(t.Context(), "x", nil, client.Assess(1)) },
	} {
		_, err := do()
		if err == nil || !strings.HasPrefix(err.Error(), "client: ") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if sent := requests(); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
}

// Every part of an act that has an option or a field arrives.
func TestOptionsArrive(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	ours, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	place := must(ours.Head(w.Ctx))(t)
	const id = performatives.MessageID("019478a3-7b2c-7def-8a12-3456789abcde")
	r := must(ours.Propose(w.Ctx, offer(5),
		client.To(beta), client.Note("fresh"), client.Assess(map[string]int{"fit": 3}), client.As(id), client.LinkTo(place),
		client.Allow(performatives.Accept, performatives.Reject), client.AnswerWithin(time.Minute), client.RequireTrust(0),
		client.Attach("a", 2)))(t)
	m := must(theirs.Await(w.Ctx))(t)
	body := m.Body().(*performatives.ProposeBody)
	c := m.Message.Constraints
	switch {
	case r.Message != id || m.Message.ID != id || r.Hash != m.Stamp.Hash:
		t.Errorf("receipt %+v for message %s", r, m.Message.ID)
	case m.Message.Recipient != beta, body.Message != "fresh", string(body.Assessment) != `{"fit":3}`:
		t.Errorf("got %s", m.Bytes)
	case *m.Message.Link != place:
		t.Errorf("its place is %+v, want %+v", m.Message.Link, place)
	case len(c.AllowedPerformatives) != 2, *c.MaxResponseTimeMs != 60_000, *c.RequiredTrustScore != 0:
		t.Errorf("its constraints are %+v", c)
	case !strings.Contains(string(m.Bytes), `"context":["a",2]`):
		t.Errorf("got %s", m.Bytes)
	}
	if err := m.Verify(w.Server.Broker.Command.Key()); err != nil {
		t.Error(err)
	}
	if _, err := theirs.Counter(w.Ctx, r.ID, offer(4)); !errors.Is(err, client.Refused(session.WrongState)) {
		t.Errorf("a COUNTER that was not allowed: %v", err)
	}
	m.Stamp.Hash = performatives.NoHash
	if m.Verify(w.Server.Broker.Command.Key()) == nil {
		t.Error("a changed hash is not found")
	}
}

// A login with another principal's key is told so, and not left waiting.
func TestAnothersKey(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	w.seed(beta)
	c := must(client.Connect(w.Ctx, w.URL, beta, client.Seed(w.seed(alpha)), w.login(alpha)))(t)
	defer c.Close()
	if _, err := c.Register(w.Ctx, api.Card{}); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("a call: %v", err)
	}
	_, err := c.Session("019478a3-0001-7def-8a12-000000000001").Propose(w.Ctx, offer(1))
	if _, unanswered := errors.AsType[*client.Unanswered](err); unanswered || !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("an act: %v", err)
	}
	for _, err := range c.Messages(w.Ctx) {
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("the inbox: %v", err)
		}
	}
}
