package agreement_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkey"
)

const (
	seller = performatives.Agent("agent://widgets.co/sales/beta")
	buyer  = performatives.Agent("agent://acme.com/procurement/alpha")

	sessionID = performatives.SessionID("019478a3-0001-7def-8a12-000000000001")
)

var start = time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)

// signerOf derives the same key from a name each time.
func signerOf(t testing.TB, name string) performatives.Signer {
	t.Helper()
	s, err := performatives.NewSigner(testkey.Of("parley agreement test vectors: " + name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A table is where two agents negotiate; a broker keeps the transcript.
type table struct {
	testing.TB
	state   session.State
	entries []transcript.Entry
}

// sit opens a session in a mode and has it accepted.
func sit(t testing.TB, mode string) *table {
	t.Helper()
	s := &table{TB: t, state: session.New(sessionID, modes.All())}
	s.say(buyer, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "forecasts",
		Terms: performatives.Object(fmt.Sprintf(`{"mode":%q,"participants":[%q],"purpose":"forecasts"}`, mode, seller)),
	})
	s.say(seller, &performatives.AcceptBody{ReferenceID: "inv"})
	return s
}

func (s *table) say(from performatives.Agent, body performatives.Body) {
	s.Helper()
	n := len(s.entries)
	at := start.Add(time.Duration(n) * time.Second)
	next := performatives.Link{PreviousHash: performatives.NoHash}
	if n > 0 {
		next = s.entries[n-1].Next()
	}
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(fmt.Sprintf("019478a3-7b2c-7def-8a12-%012x", n)), Session: sessionID, Sender: from, Body: body,
		Timestamp: at, Link: &next,
	}.Envelope(signerOf(s, string(from)))
	if err != nil {
		s.Fatal(err)
	}
	m, err := performatives.Read(envelope)
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		s.Fatal(err)
	}
	broker := signerOf(s, "broker")
	e := session.Event{Message: m, At: at, Broker: broker.Key(), Policy: performatives.Policy{
		Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000, MaxPaused: 1,
		EscalationLow: 1, EscalationMedium: 1, EscalationHigh: 1, EscalationCritical: 1,
	}}
	for _, a := range []performatives.Agent{buyer, seller} {
		e.Known.Add(performatives.Member{Agent: a, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal, Key: signerOf(s, string(a)).Key()})
	}
	state, err := session.Step(s.state, e)
	if err != nil {
		s.Fatal(err)
	}
	stamp := performatives.Stamp{Sequence: next.Sequence, PreviousHash: next.PreviousHash, Joined: state.Last.Joined}
	line, stamp, err := m.Deliver(stamp, at, state.Phase.String(), broker)
	if err != nil {
		s.Fatal(err)
	}
	entry, err := transcript.Read(line)
	if err != nil {
		s.Fatal(err)
	}
	if err := entry.Message.DecodeBody(); err != nil {
		s.Fatal(err)
	}
	s.state, s.entries = state.Sealed(m.ID, stamp.Hash), append(s.entries, entry)
}

// offer is a PROPOSE in binding/1, signed as the agreement that it makes.
func (s *table) offer(id, terms string) *performatives.ProposeBody {
	s.Helper()
	salt := sha256.Sum256([]byte(id))
	b := &performatives.ProposeBody{ProposalID: id, Type: "service-agreement", Subject: "forecasts", Terms: performatives.Object(terms)}
	b.Binding = performatives.Binding{
		AgreementSalt: base64.RawURLEncoding.EncodeToString(salt[:]), Category: "pricing",
		EffectiveFrom: "2026-04-01T00:00:00Z", EffectiveUntil: "2027-04-01T00:00:00Z",
	}
	d, err := agreement.Draft(agreement.Offer{
		Session: sessionID, Proposal: id, Parties: []performatives.Agent{buyer, seller}, Terms: b.Terms, Salt: salt, Binding: b.Binding,
	})
	if err == nil {
		b.AgreementSignature, err = agreement.Sign(signerOf(s, string(buyer)), d.Hash)
	}
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// agreed is the one agreement of the session.
func (s *table) agreed() agreement.Document {
	s.Helper()
	all, err := agreement.Of(s.entries, modes.All())
	if err != nil || len(all) != 1 {
		s.Fatalf("%d agreements, %v", len(all), err)
	}
	return all[0]
}

func bytesOf(t testing.TB, d agreement.Document) []byte {
	t.Helper()
	data, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func agreementsOf(t testing.TB, entries []transcript.Entry) []agreement.Document {
	t.Helper()
	all, err := agreement.Of(entries, modes.All())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
