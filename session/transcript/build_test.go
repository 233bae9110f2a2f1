package transcript

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkey"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	gamma = performatives.Agent("agent://widgets.co/sales/gamma")
	alice = performatives.Agent("human://acme.com/alice")

	session      = performatives.SessionID("019478a3-0001-7def-8a12-000000000001")
	otherSession = performatives.SessionID("019478a3-0002-7def-8a12-000000000002")
)

var start = time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)

// key derives the same nkey from a name each time.
func key(t testing.TB, name string) performatives.Signer {
	t.Helper()
	s, err := performatives.NewSigner(testkey.Of("parley transcript test vectors: " + name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func brokerKey(t testing.TB) performatives.Key { return key(t, "broker").Key() }

// A step is one act and how the broker delivers it.
type step struct {
	from       performatives.Agent
	body       performatives.Body
	joins      []performatives.Agent
	authority  string
	onBehalfOf performatives.Agent
	state      string
	linked     bool // by the sender

	// Set by tests that break a rule.
	unsigned bool
	signer   string        // instead of the sender
	keyless  bool          // joins without a key
	joinKey  string        // joins with another's key
	at       time.Duration // instead of the entry's own second
	id       int           // instead of the entry's own message id
	previous performatives.Hash
}

// negotiation is a session with every kind of entry: delegates, an escalation, an
// entry linked by its sender, and one made by the broker.
func negotiation(t testing.TB) []step {
	terms := func(s string) performatives.Object { return performatives.Object(s) }
	broker := performatives.BrokerAgent(brokerKey(t))
	return []step{
		{from: alpha, joins: []performatives.Agent{alpha, broker}, authority: "principal", state: "INVITED",
			body: &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "Storage", Terms: terms(`{"purpose":"storage","participants":["agent://widgets.co/sales/beta"]}`)}},
		{from: beta, joins: []performatives.Agent{beta}, authority: "principal", state: "INTRODUCED",
			body: &performatives.AcceptBody{ReferenceID: "inv"}},
		{from: alpha, state: "CONVERSING",
			body: &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "100 TB", Terms: terms(`{"price":100.5,"näme":"x"}`)}},
		{from: beta, state: "CONVERSING",
			body: &performatives.DelegateBody{TargetAgent: gamma, Scope: "price", Authority: "full"}},
		{from: gamma, joins: []performatives.Agent{gamma}, authority: "full", onBehalfOf: beta, state: "CONVERSING",
			body: &performatives.CounterBody{ProposalID: "p2", ReferenceID: "p1", Terms: terms(`{"price":120}`)}},
		{from: alpha, linked: true, state: "ESCALATED",
			body: &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: jsontext.Value(`"over the limit"`)}},
		{from: alice, joins: []performatives.Agent{alice}, authority: "decide", state: "CONVERSING",
			body: &performatives.InformBody{Type: performatives.Resolution, Data: jsontext.Value(`{"decision":"approved"}`)}},
		{from: alpha, state: "CONVERSING",
			body: &performatives.AcceptBody{ReferenceID: "p2"}},
		{from: broker, state: "FAILED",
			body: &performatives.CloseBody{Outcome: performatives.FailedEnd, Reason: "session_timeout"}},
	}
}

// after is the position of the entry after these.
func after(entries []Entry) performatives.Link {
	if len(entries) == 0 {
		return performatives.Link{PreviousHash: performatives.NoHash}
	}
	return entries[len(entries)-1].Next()
}

// deliver makes the entries that a broker would make of the steps.
func deliver(t testing.TB, in performatives.SessionID, broker string, steps []step) []Entry {
	t.Helper()
	var entries []Entry
	for i, s := range steps {
		next := after(entries)
		if s.previous != "" {
			next.PreviousHash = s.previous
		}
		id := i
		if s.id != 0 {
			id = s.id
		}
		d := performatives.Draft{
			ID:      performatives.MessageID(fmt.Sprintf("019478a3-7b2c-7def-8a12-%012x", id)),
			Session: in, Sender: s.from, Body: s.body,
			Timestamp: start.Add(time.Duration(i) * time.Second),
		}
		if s.linked {
			d.Link = &next
		}
		signer := key(t, name(s.from))
		if s.signer != "" {
			signer = key(t, s.signer)
		}
		if s.unsigned {
			signer = nil
		}
		envelope, err := d.Envelope(signer)
		if err != nil {
			t.Fatal(err)
		}
		m, err := performatives.Read(envelope)
		if err != nil {
			t.Fatal(err)
		}
		stamp := performatives.Stamp{Sequence: next.Sequence, PreviousHash: next.PreviousHash, OnBehalfOf: s.onBehalfOf}
		for _, a := range s.joins {
			stamp.Joined = append(stamp.Joined, join(t, a, s))
		}
		at := time.Duration(i) * time.Second
		if s.at != 0 {
			at = s.at
		}
		line, _, err := m.Deliver(stamp, start.Add(at), s.state, key(t, broker))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Read(line)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func join(t testing.TB, a performatives.Agent, s step) performatives.Member {
	m := performatives.Member{Agent: a, Key: key(t, name(a)).Key(), Kind: performatives.KindPersonal, Authority: s.authority}
	switch {
	case a.IsBroker():
		m.Kind, m.Authority = performatives.KindBroker, performatives.AuthorityBroker
		m.Policy = &performatives.Policy{Format: performatives.Format, InvitationTimeout: 30000}
	case a.IsHuman():
		m.Kind = performatives.KindHuman
	}
	if s.keyless {
		m.Key = ""
	}
	if s.joinKey != "" {
		m.Key = key(t, s.joinKey).Key()
	}
	return m
}

func name(a performatives.Agent) string {
	if a.IsBroker() {
		return "broker"
	}
	return string(a)
}

// genuine is the export of the negotiation, line by line.
func genuine(t testing.TB) [][]byte {
	t.Helper()
	return bytesOf(deliver(t, session, "broker", negotiation(t)))
}

func bytesOf(entries []Entry) [][]byte {
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		lines[i] = e.Bytes
	}
	return lines
}

// export writes lines as Write does.
func export(lines [][]byte) []byte {
	var out bytes.Buffer
	for _, l := range lines {
		out.Write(l)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// verify is Verify of bytes, as "line rule" pairs.
func verify(t testing.TB, data []byte, expect Expect) []string {
	t.Helper()
	faults, err := Verify(bytes.NewReader(data), brokerKey(t), expect)
	if err != nil {
		t.Fatal(err)
	}
	return short(faults)
}

func short(faults []Fault) []string {
	out := []string{}
	for _, f := range faults {
		out = append(out, fmt.Sprintf("%d %s", f.Line, f.Rule))
	}
	return out
}
