package render_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkey"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	twin  = performatives.Agent("agent://widgets.co/pricing/alpha")
	delta = performatives.Agent("agent://acme.com/legal/delta")
	alice = performatives.Agent("human://acme.com/alice")

	sessionID = performatives.SessionID("019478a3-0001-7def-8a12-000000000001")
)

// A stage plays a session as a broker would, so that what is drawn is real.
type stage struct {
	t       testing.TB
	now     time.Time
	state   session.State
	broker  performatives.Signer
	entries []transcript.Entry
}

func newStage(t testing.TB) *stage {
	t.Helper()
	broker, err := performatives.NewSigner(testkey.Of("the broker of these pictures"))
	if err != nil {
		t.Fatal(err)
	}
	return &stage{
		t: t, broker: broker, now: time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC), state: session.New(sessionID, modes.All()),
	}
}

// open invites beta and has it accept.
func (s *stage) open(subject, terms string) {
	s.t.Helper()
	s.says(alpha, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: subject, Terms: jsontext.Value(terms),
	}, to(beta))
	s.says(beta, &performatives.AcceptBody{ReferenceID: "inv"})
}

func to(a performatives.Agent) func(*performatives.Draft) {
	return func(d *performatives.Draft) { d.Recipient = a }
}

// says submits an act a second after the one before and returns its messageId.
func (s *stage) says(from performatives.Agent, body performatives.Body, change ...func(*performatives.Draft)) string {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	d := performatives.Draft{
		ID: performatives.MessageID(fmt.Sprintf("019478a3-7b2c-7def-8a12-%012x", len(s.entries)+1)), Session: sessionID,
		Timestamp: s.now, Sender: from, Body: body,
	}
	for _, c := range change {
		c(&d)
	}
	envelope, err := d.Envelope(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := performatives.Read(envelope)
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	next, err := session.Step(s.state, session.Event{Message: m, At: s.now, Known: known(), Policy: policy, Broker: s.broker.Key()})
	if err != nil {
		s.t.Fatalf("%s of %s: %v", body.Act(), from, err)
	}
	stamp := performatives.Stamp{
		Sequence: s.state.Next, PreviousHash: s.state.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}
	data, stamp, err := m.Deliver(stamp, s.now, next.Phase.String(), s.broker)
	if err != nil {
		s.t.Fatal(err)
	}
	entry, err := transcript.Read(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.entries = append(s.entries, entry)
	s.state = next.Sealed(m.ID, stamp.Hash)
	return string(d.ID)
}

// deadline lets the clock end the session.
func (s *stage) deadline() {
	s.t.Helper()
	s.now = s.now.Add(31 * 24 * time.Hour)
	due, passed := s.state.Passed(s.now)
	if !passed {
		s.t.Fatal("no deadline has passed")
	}
	s.says(performatives.BrokerAgent(s.broker.Key()), &performatives.CloseBody{Outcome: performatives.FailedEnd, Reason: due.Code})
}

func (s *stage) view() api.SessionView { return api.ViewSession(&s.state, s.now) }

var policy = performatives.Policy{
	Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000,
	EscalationLow: 24 * 3_600_000, EscalationMedium: 4 * 3_600_000, EscalationHigh: 3_600_000, EscalationCritical: 15 * 60_000,
	MaxPaused: 7 * 24 * 3_600_000,
}

func known() session.Known {
	members := session.Known{}
	for _, a := range []performatives.Agent{alpha, beta, twin, delta} {
		members.Add(performatives.Member{Agent: a, Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal})
	}
	members.Add(performatives.Member{Agent: alice, Kind: performatives.KindHuman, Authority: performatives.AuthorityDecide})
	return members
}
