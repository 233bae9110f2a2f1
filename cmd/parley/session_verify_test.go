package main

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// TestVerifyPlaysTheRules: a transcript can be whole, signed and receipted, and
// still say what no broker that keeps the rules would have written.
func TestVerifyPlaysTheRules(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]transcript.Rule{"INVITED": "", "CONVERSING": replayed} {
		line, broker := invitation(t, state)
		v := &verify{trust: brokerTrust{key: broker}}
		if err := v.check("one.jsonl", append(line, '\n'), transcript.Expect{}); err != nil {
			t.Fatal(err)
		}
		got := v.verdicts[0]
		if got.Entries != 1 || got.OK != (want == "") {
			t.Errorf("%s: %+v", state, got)
		}
		if !got.OK && (len(got.Faults) != 1 || got.Faults[0].Rule != want || got.Faults[0].Line != 1) {
			t.Errorf("%s: faults %v", state, got.Faults)
		}
	}
}

// invitation is one entry after which a broker says that the session is in a state.
func invitation(t *testing.T, state string) ([]byte, performatives.Key) {
	t.Helper()
	signer := func() performatives.Signer {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		s, err := performatives.NewSigner(pair)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := time.Now()
	broker, key := signer(), signer()
	envelope, err := performatives.Draft{
		ID: "019478a3-7b2c-7def-8a12-000000000001", Session: "019478a3-0001-7def-8a12-000000000001", Timestamp: now, Sender: alpha, Recipient: beta,
		Body: &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: jsontext.Value(`{}`)},
	}.Envelope(key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := performatives.Read(envelope)
	if err != nil {
		t.Fatal(err)
	}
	line, _, err := m.Deliver(performatives.Stamp{PreviousHash: performatives.NoHash, Joined: []performatives.Member{
		{Agent: performatives.BrokerAgent(broker.Key()), Key: broker.Key(), Kind: performatives.KindBroker, Authority: performatives.AuthorityBroker, Policy: &performatives.Policy{Format: 1, InvitationTimeout: 30_000, MaxDuration: 3_600_000}},
		{Agent: alpha, Key: key.Key(), Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal},
		{Agent: beta, Key: key.Key(), Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal},
	}}, now, state, broker)
	if err != nil {
		t.Fatal(err)
	}
	return line, broker.Key()
}
