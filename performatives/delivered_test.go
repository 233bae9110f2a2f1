package performatives

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/internal/ijson"
)

// linkedBySender's place is the one that the envelope says.
var linkedBySender = Stamp{Sequence: 5, PreviousHash: Hash("sha256:" + strings.Repeat("a", 64))}

var score = 70.5

// everything is a stamp with all that a broker may add.
func everything(t testing.TB, at Stamp) Stamp {
	at.OnBehalfOf = "agent://acme.com/procurement"
	at.Joined = []Member{
		{Agent: "agent://acme.com/procurement/alpha", Key: testKey(t, "alpha").Key(), Kind: KindPersonal, Authority: "full", TrustScore: &score},
		{Agent: BrokerAgent(testKey(t, "broker").Key()), Key: testKey(t, "broker").Key(), Kind: KindBroker, Authority: AuthorityBroker,
			Policy: &Policy{Format: Format, InvitationTimeout: 30000, MaxDuration: 3600000}},
	}
	return at
}

func mustDeliver(t testing.TB, m *Message, s Stamp) ([]byte, Stamp) {
	t.Helper()
	data, stamp, err := m.Deliver(s, acceptedAt, "CONVERSING", testKey(t, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	return data, stamp
}

// TestDeliver is PROTOCOL.md §3: what the broker adds can be taken away again,
// and then the sender's signature still fits, whoever linked the entry.
func TestDeliver(t *testing.T) {
	t.Parallel()
	brokers := Stamp{Sequence: 7, PreviousHash: HashOf([]byte("the entry before"))}
	for name, tt := range map[string]struct {
		envelope []byte
		stamp    Stamp
		linkedBy string
	}{
		"by the sender":             {mustSign(t, envelope), linkedBySender, "sender"},
		"by the sender, everything": {mustSign(t, envelope), everything(t, linkedBySender), "sender"},
		"by the broker":             {mustSign(t, bare), brokers, "broker"},
		"by the broker, everything": {mustSign(t, bare), everything(t, brokers), "broker"},
		"by the broker, first":      {mustSign(t, bare), Stamp{PreviousHash: NoHash}, "broker"},
		"unsigned":                  {[]byte(bare), brokers, "broker"},
		"empty integrity":           {mustSign(t, strings.Replace(bare, `"content"`, `"integrity":{},"content"`, 1)), brokers, "broker"},
		"keys in the way of ours":   {mustSign(t, strings.Replace(bare, `"content"`, `"integrity":{"hashes":1,"hasg":2,"\ufb33":3,"😀":4,"":5},"content"`, 1)), brokers, "broker"},
	} {
		m, err := Read(tt.envelope)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data, stamp := mustDeliver(t, m, tt.stamp)
		if canonical, err := ijson.Canonicalise(data); err != nil || !Equal(canonical, data) {
			t.Errorf("%s: not canonical: %s", name, data)
		}
		if !strings.Contains(string(data), `"linkedBy":"`+tt.linkedBy+`"`) {
			t.Errorf("%s: %s", name, data)
		}
		back, read, recomputed, err := ReadDelivered(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(stamp, read); diff != "" {
			t.Errorf("%s: stamp (-delivered +read):\n%s", name, diff)
		}
		if recomputed != stamp.Hash {
			t.Errorf("%s: hash %s, recomputed %s", name, stamp.Hash, recomputed)
		}
		if err := read.VerifyReceipt(testKey(t, "broker").Key()); err != nil {
			t.Errorf("%s: receipt: %v", name, err)
		}
		if at, err := read.AcceptedAt(); err != nil || !at.Equal(acceptedAt) || read.Receipt.AcceptedAt != "2026-03-07T13:30:01.000000005Z" {
			t.Errorf("%s: accepted at %s, %v", name, read.Receipt.AcceptedAt, err)
		}
		if !bytes.Equal(back.SigningBytes(), m.SigningBytes()) || back.Signature != m.Signature {
			t.Errorf("%s: the sender made\n%s, read back\n%s", name, m.SigningBytes(), back.SigningBytes())
		}
		if m.Signature != "" {
			if err := back.VerifySignature(testKey(t, "alpha").Key()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(m.Link, back.Link); diff != "" {
			t.Errorf("%s: link (-made +read):\n%s", name, diff)
		}
		again, _ := mustDeliver(t, back, tt.stamp)
		if !bytes.Equal(again, data) {
			t.Errorf("%s: delivered again as other bytes", name)
		}
	}
}

// TestUnknownFieldsAreKept is PROTOCOL.md §3: kept and hashed.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	data, stamp := mustDeliver(t, mustRead(t, envelope), linkedBySender)
	for _, kept := range []string{`"x-trace":{"a":2,"b":1}`, `"note":"kept"`, `"orgId":"org_acme"`} {
		if !strings.Contains(string(data), kept) {
			t.Errorf("%s was lost: %s", kept, data)
		}
		changed := strings.Replace(string(data), kept, strings.NewReplacer("kept", "lost", "1", "3", "org_acme", "org_zcme").Replace(kept), 1)
		_, s, recomputed, err := ReadDelivered([]byte(changed))
		if err != nil || s.Hash != stamp.Hash || recomputed == stamp.Hash {
			t.Errorf("%s is not hashed: %v", kept, err)
		}
	}
}

// TestHashesAsWritten computes an entry's hash and signed bytes from
// PROTOCOL.md §3 by cutting text, not by the code under test.
func TestHashesAsWritten(t *testing.T) {
	t.Parallel()
	signed := string(mustSign(t, bare))
	m := mustRead(t, signed)
	unsigned := strings.Replace(signed, `"signature":"`+m.Signature+`"`, "", 1)
	if err := VerifyBytes(testKey(t, "alpha").Key(), []byte(unsigned), m.Signature); err != nil || !strings.Contains(unsigned, `"integrity":{}`) {
		t.Errorf("signed are other bytes than %s", unsigned)
	}
	data, s := mustDeliver(t, m, Stamp{PreviousHash: NoHash})
	text := string(data)
	from, to := strings.Index(text, `"receipt":`), strings.Index(text, `,"signature":"`+m.Signature)
	if from < 0 || to < 0 {
		t.Fatal(text)
	}
	text = strings.Replace(text[:from]+text[to+1:], `"hash":"`+string(s.Hash)+`",`, "", 1)
	if HashOf([]byte(text)) != s.Hash {
		t.Errorf("hashed are other bytes than %s", text)
	}
	receipt := `{"acceptedAt":"2026-03-07T13:30:01.000000005Z","hash":"` + string(s.Hash) + `","state":"CONVERSING"}`
	if err := VerifyBytes(testKey(t, "broker").Key(), []byte(receipt), s.Receipt.Signature); err != nil {
		t.Errorf("the receipt is of other bytes than %s", receipt)
	}
	if len(NoHash) != len("sha256:")+64 || strings.Trim(string(NoHash[7:]), "0") != "" || !NoHash.Valid() {
		t.Error(NoHash)
	}
}

// TestDeliverKeepsTheSendersPlace: a place that the sender signed is not moved.
func TestDeliverKeepsTheSendersPlace(t *testing.T) {
	t.Parallel()
	m := mustRead(t, envelope)
	for _, s := range []Stamp{{Sequence: 6, PreviousHash: linkedBySender.PreviousHash}, {Sequence: 5, PreviousHash: NoHash}} {
		if _, _, err := m.Deliver(s, acceptedAt, "CONVERSING", testKey(t, "broker")); err == nil {
			t.Errorf("moved to %+v", s)
		}
	}
}

// TestReadDeliveredRefuses what is no entry.
func TestReadDeliveredRefuses(t *testing.T) {
	t.Parallel()
	data, stamp := mustDeliver(t, mustRead(t, string(mustSign(t, bare))), Stamp{PreviousHash: NoHash})
	good := string(data)
	for name, tt := range map[string]struct{ old, replacement, path string }{
		"no integrity":        {good, bare, "/integrity"},
		"integrity null":      {good, strings.Replace(bare, `"content"`, `"integrity":null,"content"`, 1), "/integrity"},
		"no sequence":         {`"sequenceNumber":0,`, ``, "/sequenceNumber"},
		"sequence text":       {`"sequenceNumber":0`, `"sequenceNumber":"0"`, "/sequenceNumber"},
		"no linkedBy":         {`"linkedBy":"broker",`, ``, "/integrity/linkedBy"},
		"another linkedBy":    {`"linkedBy":"broker"`, `"linkedBy":"me"`, "/integrity/linkedBy"},
		"no previous hash":    {`"previousHash":"` + string(NoHash) + `",`, ``, ""},
		"receipt null":        {`"receipt":{`, `"receipt":null,"x":{`, "/integrity/receipt"},
		"receipt field extra": {`"receipt":{`, `"receipt":{"x":1,`, "/integrity/receipt"},
		"receipt field less":  {`"acceptedAt":"` + stamp.Receipt.AcceptedAt + `",`, ``, "/integrity/receipt"},
		"joined text":         {`"hash":"`, `"joined":"x","hash":"`, "/integrity/joined"},
		"hash number":         {`"hash":"` + string(stamp.Hash) + `"`, `"hash":1`, "/integrity/hash"},
		"message id":          {`"messageId":"0`, `"messageId":"x`, "/messageId"},
	} {
		_, _, _, err := ReadDelivered([]byte(strings.Replace(good, tt.old, tt.replacement, 1)))
		if name == "no previous hash" {
			if err != nil {
				t.Errorf("%s: %v", name, err) // a verifier says it better
			}
			continue
		}
		if wantMalformed(t, err, tt.path) == "" {
			t.Log(name)
		}
	}
	if _, _, _, err := ReadDelivered(bytes.Repeat([]byte(" "), 4*MaxEnvelope+1)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// TestEveryByteIsSigned changes each byte of an entry, one at a time: the
// signature, the hash or the receipt no longer fits.
func TestEveryByteIsSigned(t *testing.T) {
	t.Parallel()
	broker, alpha := testKey(t, "broker").Key(), testKey(t, "alpha").Key()
	signed := mustSign(t, bare)
	data, _ := mustDeliver(t, mustRead(t, string(signed)), everything(t, Stamp{PreviousHash: NoHash}))
	for i := range signed {
		changed := bytes.Clone(signed)
		changed[i] ^= 1
		if m, err := Read(changed); err == nil && m.VerifySignature(alpha) == nil {
			t.Errorf("byte %d of the envelope is not signed: %s", i, changed)
		}
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		_, s, recomputed, err := ReadDelivered(changed)
		if err == nil && recomputed == s.Hash && s.Receipt.Broker == broker && s.VerifyReceipt(broker) == nil {
			t.Errorf("byte %d of the entry is not hashed: %s", i, changed)
		}
	}
}

// TestVerifyBytes is the signature's form: ed25519: and 128 lower-case hex digits.
func TestVerifyBytes(t *testing.T) {
	t.Parallel()
	alpha, data := testKey(t, "alpha"), []byte("data")
	good, err := SignBytes(alpha, data)
	if err != nil || len(good) != len("ed25519:")+128 {
		t.Fatal(good, err)
	}
	if err := VerifyBytes(alpha.Key(), data, good); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		key       Key
		data      string
		signature string
	}{
		"other data":   {alpha.Key(), "date", good},
		"other key":    {testKey(t, "beta").Key(), "data", good},
		"no key":       {"", "data", good},
		"key broken":   {alpha.Key() + "\n", "data", good},
		"none":         {alpha.Key(), "data", ""},
		"no prefix":    {alpha.Key(), "data", good[8:]},
		"other prefix": {alpha.Key(), "data", "ED25519:" + good[8:]},
		"upper case":   {alpha.Key(), "data", "ed25519:" + strings.ToUpper(good[8:])},
		"short":        {alpha.Key(), "data", good[:len(good)-2]},
		"long":         {alpha.Key(), "data", good + "00"},
		"not hex":      {alpha.Key(), "data", good[:len(good)-1] + "g"},
	} {
		if err := VerifyBytes(tt.key, []byte(tt.data), tt.signature); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDraft: what a draft writes is read back, signed, with its own place.
func TestDraft(t *testing.T) {
	t.Parallel()
	most := 50.0
	d := Draft{
		ID: "019478a3-7b2c-7def-8a12-3456789abcde", Session: "019478a3-0001-7def-8a12-000000000001",
		Timestamp: time.Date(2026, 3, 7, 15, 30, 0, 1234567, time.FixedZone("", 3600)),
		Sender:    "agent://acme.com/a", OrgID: "org", Recipient: "human://acme.com/b",
		Body:        &WithdrawBody{ReferenceID: "p1"},
		Constraints: &Constraints{RequiredTrustScore: &most},
		Link:        &Link{Sequence: 3, PreviousHash: HashOf(nil)},
	}
	data, err := d.Envelope(testKey(t, "alpha"))
	if err != nil {
		t.Fatal(err)
	}
	m := mustRead(t, string(data))
	if err := m.VerifySignature(testKey(t, "alpha").Key()); err != nil {
		t.Error(err)
	}
	if err := m.DecodeBody(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(d.Body, m.Body); diff != "" {
		t.Error(diff)
	}
	if m.ID != d.ID || m.Session != d.Session || m.Sender != d.Sender || m.Recipient != d.Recipient || m.Performative != Withdraw ||
		*m.Link != *d.Link || *m.Constraints.RequiredTrustScore != most || !strings.Contains(string(data), `"timestamp":"2026-03-07T14:30:00.001Z"`) {
		t.Errorf("%s", data)
	}
	d.Link = nil
	if data, err = d.Envelope(nil); err != nil {
		t.Fatal(err)
	}
	if m := mustRead(t, string(data)); m.Signature != "" || m.Link != nil {
		t.Errorf("%s", data)
	}
}
