package performatives

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
)

// FuzzRead: Read never panics; its canonical form is a fixed point; and what it
// takes can be delivered, read back and delivered again as the same bytes.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		envelope, bare, string(mustSign(f, envelope)), string(mustSign(f, bare)), `{}`, "", "\ufeff{}", `[[`, `{"a":1e400}`,
		edit(f, "/sequenceNumber", null{}), edit(f, "/integrity/previousHash", null{}), edit(f, "/recipient", null{}),
		edit(f, "/integrity/signature", ""), edit(f, "/content/body", map[string]any{"\ufb33": 1e21, "😀": -1e-9}),
		edit(f, "/timestamp", "9999-12-31T23:59:59-00:01"),
	} {
		f.Add([]byte(seed))
	}
	broker := testKey(f, "broker")
	f.Fuzz(func(t *testing.T, data []byte) {
		canonical, err := Canonical(data)
		if err == nil {
			again, err := Canonical(canonical)
			if err != nil || !Equal(again, canonical) {
				t.Fatalf("canonical of %q is %s; of that, %s, %v", data, canonical, again, err)
			}
		}
		m, readErr := Read(data)
		if readErr != nil {
			return
		}
		if err != nil {
			t.Fatalf("Read took what is not I-JSON: %q", data)
		}
		stamp := Stamp{PreviousHash: NoHash}
		if m.Link != nil {
			stamp = Stamp{Sequence: m.Link.Sequence, PreviousHash: m.Link.PreviousHash}
		}
		entry, stamp, err := m.Deliver(stamp, acceptedAt, "CONVERSING", broker)
		if err != nil {
			t.Fatalf("%q cannot be delivered: %v", data, err)
		}
		back, _, recomputed, err := ReadDelivered(entry)
		if err != nil || recomputed != stamp.Hash {
			t.Fatalf("%s does not read back: hash %s, %v", entry, recomputed, err)
		}
		if back.Digest() != m.Digest() || back.Signature != m.Signature {
			t.Fatalf("made %s; read back %s", m.SigningBytes(), back.SigningBytes())
		}
	})
}

// FuzzReadDelivered: it never panics, and what it takes has one canonical form.
func FuzzReadDelivered(f *testing.F) {
	for _, tt := range []struct {
		envelope string
		stamp    Stamp
	}{
		{bare, Stamp{PreviousHash: NoHash}},
		{string(mustSign(f, bare)), everything(f, Stamp{Sequence: 1, PreviousHash: HashOf(nil)})},
		{string(mustSign(f, envelope)), everything(f, linkedBySender)},
	} {
		entry, _ := mustDeliver(f, mustRead(f, tt.envelope), tt.stamp)
		f.Add(entry)
	}
	f.Add([]byte(bare))
	f.Add([]byte(`{"integrity":{"linkedBy":"broker","receipt":{}},"sequenceNumber":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, stamp, recomputed, err := ReadDelivered(data)
		if err != nil {
			return
		}
		canonical, err := ijson.Canonicalise(data)
		if err != nil {
			t.Fatalf("read %q, which is not JSON: %v", data, err)
		}
		if len(canonical) > 4*MaxEnvelope {
			return
		}
		again, stampAgain, recomputedAgain, err := ReadDelivered(canonical)
		if err != nil || recomputed != recomputedAgain || stamp.Hash != stampAgain.Hash || !bytes.Equal(m.SigningBytes(), again.SigningBytes()) {
			t.Fatalf("%s reads otherwise than %q: %v", canonical, data, err)
		}
	})
}

// decoded is an envelope as the decoder reads it, which is the oracle for fields.
type decoded struct {
	Version        *string        `json:"version"`
	MessageID      *string        `json:"messageId"`
	SessionID      *string        `json:"sessionId"`
	SequenceNumber jsontext.Value `json:"sequenceNumber"`
	Timestamp      *string        `json:"timestamp"`
	Sender         *struct {
		AgentID *string `json:"agentId"`
		OrgID   *string `json:"orgId"`
	} `json:"sender"`
	Recipient    jsontext.Value `json:"recipient"`
	Performative *string        `json:"performative"`
	Content      *struct {
		MimeType *string        `json:"mimeType"`
		Body     jsontext.Value `json:"body"`
		Context  jsontext.Value `json:"context"`
	} `json:"content"`
	Constraints *Constraints   `json:"constraints"`
	Broker      jsontext.Value `json:"broker"`
	Integrity   jsontext.Value `json:"integrity"`
}

func (d decoded) fields(t *testing.T) fields {
	t.Helper()
	raw := func(s *string) jsontext.Value {
		if s == nil {
			return nil
		}
		return appendQuote(nil, *s)
	}
	w := fields{
		version: raw(d.Version), id: raw(d.MessageID), session: raw(d.SessionID), timestamp: raw(d.Timestamp), act: raw(d.Performative),
		sequence: d.SequenceNumber, recipient: d.Recipient, broker: d.Broker, integrity: d.Integrity, constraints: d.Constraints,
	}
	if d.Sender != nil {
		w.sender = raw(d.Sender.AgentID)
	}
	if d.Content != nil {
		w.body, w.context = d.Content.Body, d.Content.Context
	}
	return w
}

// FuzzFields: what is read without the decoder is what the decoder reads, also
// where it finds fault.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		envelope, bare, edit(f, "/sender/orgId", null{}), edit(f, "/sender/agentId", 1), edit(f, "/content/mimeType", 1), edit(f, "/content/context", nil),
		edit(f, "/constraints", null{}), edit(f, "/constraints/requiredTrustScore", "x"), edit(f, "/version", "\n"), edit(f, "/timestamp", "é"), `{}`, `{"sender":{},"content":[]}`,
		edit(f, "/sender", null{}), edit(f, "/content", null{}), edit(f, "/sender", 1), edit(f, "/constraints", 1), edit(f, "/integrity", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		canonical, err := Canonical(data)
		if err != nil || canonical.Kind() != '{' {
			return
		}
		members, err := split(nil, canonical)
		if err != nil {
			t.Fatalf("%s is an object: %v", canonical, err)
		}
		var d decoded
		got, gotErr := readFields(members)
		wantErr := Unmarshal(canonical, &d, "")
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%s: %v; the decoder says %v", canonical, gotErr, wantErr)
		}
		if want := d.fields(t); wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is read as %v; by the decoder as %v", canonical, got, want)
		}
	})
}
