package performatives

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-asp/parley/test/testkey"
)

// envelope is a whole one, as in PROTOCOL.md §3, unsigned.
const envelope = `{
  "version": "asp/0.1",
  "messageId": "019478a3-7b2c-7def-8a12-3456789abcde",
  "sessionId": "019478a3-0001-7def-8a12-000000000001",
  "sequenceNumber": 5,
  "timestamp": "2026-03-07T14:30:00.000Z",
  "sender": {"agentId": "agent://acme.com/procurement/alpha", "orgId": "org_acme"},
  "recipient": "agent://widgets.co/sales/beta",
  "performative": "COUNTER",
  "content": {"mimeType": "application/json", "body": {"proposalId": "p2", "referenceId": "p1", "terms": {"price": 1e2}}, "context": []},
  "constraints": {"maxResponseTimeMs": 5000, "requiredTrustScore": 50, "allowedPerformatives": ["ACCEPT", "REJECT"]},
  "integrity": {"previousHash": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "note": "kept"},
  "x-trace": {"b": 1, "a": 2}
}`

// bare is the least that a sender may send.
const bare = `{"version":"asp/0.1","messageId":"019478a3-7b2c-7def-8a12-3456789abcde",` +
	`"sessionId":"019478a3-0001-7def-8a12-000000000001","timestamp":"2026-03-07T14:30:00.000Z",` +
	`"sender":{"agentId":"agent://acme.com/a"},"performative":"OBSERVE","content":{"body":{"subject":"s"}}}`

var acceptedAt = time.Date(2026, 3, 7, 14, 30, 1, 5, time.FixedZone("", 3600))

// testKey makes the same nkey of a name each time.
func testKey(t testing.TB, name string) Signer {
	t.Helper()
	s, err := NewSigner(testkey.Of(name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRead(t testing.TB, data string) *Message {
	t.Helper()
	m, err := Read([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustSign(t testing.TB, data string) []byte {
	t.Helper()
	signed, err := Sign([]byte(data), testKey(t, "alpha"))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// wantMalformed asserts where, and returns why.
func wantMalformed(t testing.TB, err error, path string) string {
	t.Helper()
	var m *Malformed
	if !errors.As(err, &m) {
		t.Errorf("got %v, want malformed at %q", err, path)
		return ""
	}
	if m.Path != path {
		t.Errorf("malformed at %q (%s), want at %q", m.Path, m.Why, path)
	}
	return m.Why
}
