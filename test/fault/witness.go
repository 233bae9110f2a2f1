// Package fault stops brokers where it hurts, and then asks what is left.
//
// A [Witness] speaks to a broker as any program could, keeps what it was
// promised, and holds transcripts and inboxes against that: every acceptance is
// in the transcript, the chain verifies, and every other participant has each
// entry once and in order.
package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// A Witness is one plain connection to a broker under --dev.
type Witness struct {
	testing.TB
	nc    *nats.Conn
	js    jetstream.JetStream
	key   performatives.Key
	boxes *mailboxes

	missed chan struct{} // for each time that nobody answered, or not now
}

// NewWitness connects for ever: brokers will come and go.
func NewWitness(t testing.TB, url string) *Witness {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	w := &Witness{TB: t, nc: nc, js: js, missed: make(chan struct{}, 1), boxes: &mailboxes{read: map[string][]received{}}}
	var info api.Broker
	w.Call(api.BrokerInfo.Name, "{}", &info)
	w.key = info.Key
	return w
}

// Beside makes a witness at another address of the same brokers, who reads the
// same inboxes.
func (w *Witness) Beside(url string) *Witness {
	w.Helper()
	other := NewWitness(w.TB, url)
	other.boxes = w.boxes
	return other
}

// A Session is what the witness said in one, and was answered.
type Session struct {
	ID       performatives.SessionID
	Deadline time.Time // of an invitation by Invite, at the latest
	witness  *Witness
	mu       sync.Mutex
	said     []promise
	told     []Place
	history  history
}

type promise struct {
	id       performatives.MessageID
	sender   performatives.Agent
	envelope []byte
	answer   api.Acceptance
}

// Say submits an act until it is answered, with the same bytes each time, and
// fails the test if it is refused. A refusal that may be old is no answer.
func (s *Session) Say(sender performatives.Agent, act, body string) api.Acceptance {
	s.witness.Helper()
	p := s.promise(sender, act, body, nil)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var m *nats.Msg
	testkit.Until(ctx, func() bool {
		m = s.send(p)
		return m.Header.Get(api.ErrorCodeHeader) == "" || !s.history.lags(now())
	})
	p.answer = s.acceptance(m)
	s.history.accepted(p.id, p.answer.Sequence)
	s.keep(p)
	return p.answer
}

// SayOnce submits an act to a broker that may be gone before it answers, and
// waits as long as the context. What is not answered is repeated in Again.
func (s *Session) SayOnce(ctx context.Context, sender performatives.Agent, act, body string) {
	s.witness.Helper()
	p := s.promise(sender, act, body, nil)
	s.history.sends(p.id)
	if m, err := s.witness.nc.RequestWithContext(ctx, api.Submit(sender, s.ID), p.envelope); err == nil {
		p.answer = s.acceptance(m)
		s.history.accepted(p.id, p.answer.Sequence)
	}
	s.keep(p)
}

// Code submits an act and returns the code of its refusal, "" if it is accepted.
func (s *Session) Code(sender performatives.Agent, act, body string) string {
	s.witness.Helper()
	p := s.promise(sender, act, body, nil)
	var m *nats.Msg
	testkit.Eventually(s.witness, "the act is answered", func() (answered bool) { // an answer may be lost with a connection
		var err error
		m, err = s.witness.nc.Request(api.Submit(sender, s.ID), p.envelope, 5*time.Second)
		return err == nil
	})
	var refused api.ErrorReply
	if err := json.Unmarshal(m.Data, &refused); err != nil {
		s.witness.Fatal(err)
	}
	return string(refused.Error.Code)
}

// Refused submits so many copies of an act without waiting, and then the same bytes until
// somebody refuses them. It returns what receives the answers to the copies.
func (s *Session) Refused(sender performatives.Agent, act, body string, copies int) (answers *nats.Subscription) {
	s.witness.Helper()
	p, inbox := s.promise(sender, act, body, nil), s.witness.nc.NewInbox()
	answers, err := s.witness.nc.SubscribeSync(inbox)
	if err != nil {
		s.witness.Fatal(err)
	}
	for range copies {
		if err := s.witness.nc.PublishRequest(api.Submit(sender, s.ID), inbox, p.envelope); err != nil {
			s.witness.Fatal(err)
		}
	}
	if m := s.send(p); m.Header.Get(api.ErrorCodeHeader) == "" {
		s.witness.Errorf("session %s: answered although there is nothing to answer: %s", s.ID, m.Data)
	}
	return answers
}

// Late waits until a party learns that a deadline has ended a session by Invite,
// and tells how long after it that was. No broker is asked for anything.
func (s *Session) Late(party performatives.Agent) time.Duration {
	s.witness.Helper()
	got := s.collect(party, 2) // the invitation, and its end
	last, err := transcript.Read(got[len(got)-1].Data())
	if err != nil || !last.Message.Sender.IsBroker() {
		s.witness.Fatalf("session %s has not ended: %d entries, %v", s.ID, len(got), err)
	}
	ended, err := last.Stamp.AcceptedAt()
	if err != nil {
		s.witness.Fatal(err)
	}
	return ended.Sub(s.Deadline)
}

func (s *Session) keep(p promise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, p)
}

// promise makes an act.
func (s *Session) promise(sender performatives.Agent, act, body string, at *Place) promise {
	id, link := uuid.Must(uuid.NewV7()), ""
	if at != nil {
		link = fmt.Sprintf(`"sequenceNumber":%d,"integrity":{"previousHash":%q},`, at.Sequence, at.Previous)
	}
	return promise{id: performatives.MessageID(id.String()), sender: sender, envelope: fmt.Appendf(nil,
		`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,%s"content":{"body":%s}}`,
		id, s.ID, time.Now().UTC().Format(time.RFC3339Nano), sender, act, link, body)}
}

// send submits an act until it is answered.
func (s *Session) send(p promise) *nats.Msg {
	s.witness.Helper()
	s.history.sends(p.id)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	m := &nats.Msg{Data: []byte("{}")}
	if testkit.Until(ctx, func() bool {
		answer, err := s.witness.nc.Request(api.Submit(p.sender, s.ID), p.envelope, time.Second)
		if err != nil || answer.Header.Get(api.ErrorCodeHeader) == "503" { // nobody is there, or not yet
			select {
			case s.witness.missed <- struct{}{}:
			default:
			}
			return false
		}
		m = answer
		return true
	}) != nil {
		s.witness.Errorf("session %s: no answer in %s", s.ID, testkit.Patience)
	}
	return m
}

func (s *Session) acceptance(m *nats.Msg) (a api.Acceptance) {
	s.witness.Helper()
	if err := json.Unmarshal(m.Data, &a); err != nil || !a.Accepted {
		s.witness.Errorf("session %s: refused: %s", s.ID, m.Data)
	}
	return a
}

// Again repeats everything that was said; the answers must be the first ones.
func (s *Session) Again() {
	s.witness.Helper()
	for i, p := range s.said {
		asked := now()
		again := s.acceptance(s.send(p))
		s.history.accepted(p.id, again.Sequence)
		if p.answer.Accepted {
			s.history.note(holds{again.Sequence}, asked)
			p.answer.Duplicate = again.Duplicate
			if again != p.answer || !again.Duplicate {
				s.witness.Errorf("session %s: first answered %+v, then %+v", s.ID, p.answer, again)
			}
		}
		s.said[i].answer = again
	}
}

// Check holds the transcript and the inboxes of the parties against what was
// promised. parties are all who have a part from the first entry on.
func (s *Session) Check(parties ...performatives.Agent) {
	s.witness.Helper()
	lines := s.transcript()
	expect := transcript.Expect{Session: s.ID, Length: len(lines), AllowUnsigned: true}
	faults, err := transcript.Verify(bytes.NewReader(bytes.Join(lines, []byte("\n"))), s.witness.key, expect)
	if err != nil || len(faults) > 0 {
		s.witness.Errorf("session %s: %v %v", s.ID, faults, err)
		return
	}
	entries := make([]transcript.Entry, len(lines))
	for i, line := range lines {
		if entries[i], err = transcript.Read(line); err != nil {
			s.witness.Fatal(err)
		}
	}
	for n, e := range entries {
		if s.history.takesBack(e) {
			s.witness.Errorf("session %s: entry %d was refused: %s", s.ID, n, e.Message.ID)
		}
	}
	for _, p := range s.said {
		a := p.answer
		if !a.Accepted {
			continue
		}
		if a.Sequence >= uint64(len(entries)) || entries[a.Sequence].Stamp.Hash != a.Hash || entries[a.Sequence].Message.ID != a.Message {
			s.witness.Errorf("session %s: accepted as entry %d of %d, and is not there: %s", s.ID, a.Sequence, len(entries), a.Message)
		}
	}
	for _, at := range s.told {
		if at.Sequence > uint64(len(entries)) || at.Sequence > 0 && entries[at.Sequence-1].Stamp.Hash != at.Previous {
			s.witness.Errorf("session %s: somebody read that entry %d comes after %s, and the transcript does not say so", s.ID, at.Sequence, at.Previous)
		}
	}
	if got := s.history.linearizable(entries); got != porcupine.Ok {
		s.witness.Errorf("session %s: what was answered is not what a log says: %s %q", s.ID, got, s.history.why())
	}
	for _, party := range parties {
		var want []uint64
		for _, e := range entries {
			if e.Message.Sender != party {
				want = append(want, e.Stamp.Sequence)
			}
		}
		if got := s.received(party, lines, len(want)); !slices.Equal(got, want) {
			s.witness.Errorf("session %s: %s has received %v, want %v", s.ID, party, got, want)
		}
	}
}

// Call asks as operator, until there is an answer.
func (w *Witness) Call(verb, request string, answer any) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var last error
	if testkit.Until(ctx, func() bool {
		m, err := w.nc.Request(api.OperatorCall(verb), []byte(request), 5*time.Second)
		if err == nil && m.Header.Get(api.ErrorCodeHeader) != "" {
			err = errors.New(string(m.Data))
		}
		if last = err; err == nil {
			testkit.Must(w, json.Unmarshal(m.Data, answer))
		}
		return err == nil
	}) != nil {
		w.Fatalf("%s: %v", verb, last)
	}
}

// State is what the session is in.
func (s *Session) State() string {
	var view struct{ State string }
	s.witness.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, s.ID), &view)
	return view.State
}
