package performatives

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
)

// Who linked an entry to the one before it.
const (
	LinkedBySender = "sender"
	LinkedByBroker = "broker"
)

// A Stamp is what the broker adds to a message when it accepts it: its position
// in the transcript, for whom it was done, who joins by it, and the receipt.
type Stamp struct {
	Sequence     uint64
	PreviousHash Hash
	OnBehalfOf   Agent    // the principal whom a delegate acts for
	Joined       []Member // who joins by this entry, with the keys to verify them by
	Hash         Hash
	Receipt      Receipt

	Routes []*Route // with the names that Joined has sealed; only the broker keeps them
}

// A Receipt is the broker's word that it accepted the entry.
type Receipt struct {
	AcceptedAt string `json:"acceptedAt"` // RFC 3339; deadlines are judged by it
	State      string `json:"state"`      // of the session after the entry
	Broker     Key    `json:"broker"`
	Signature  string `json:"signature"` // over the JCS of {acceptedAt, hash, state}
}

// A Member is a party to the session as pinned in the transcript when it
// joined: enough to verify everything it says, offline.
type Member struct {
	Agent       Agent       `json:"agentId"`
	Key         Key         `json:"key,omitzero"`     // absent only under --dev
	Custody     string      `json:"custody,omitzero"` // of the key: hosted, or absent where the principal holds it itself
	DIDKey      Key         `json:"didKey,omitzero"`  // the principal's own key, where key is hosted
	DID         string      `json:"did,omitzero"`     // of a principal that has registered another than WebDID
	CCC         *Regulation `json:"ccc,omitzero"`     // of a principal: what its card's context says of its profession or trade
	Kind        string      `json:"kind"`             // system, personal, human or broker
	Authority   string      `json:"authority"`        // principal, full, limited, advisory, standby, decide or broker
	TrustScore  *float64    `json:"trustScore,omitzero"`
	Limited     bool        `json:"limited,omitzero"`             // of a human who may decide: there is a ceiling
	Standby     Agent       `json:"standby,omitzero"`             // of a principal: who may take turns that it leaves waiting
	Conformance string      `json:"conformanceLevel,omitzero"`    // minimal of an agent that only exchanges information
	MaxValue    *float64    `json:"maxTransactionValue,omitzero"` // the most that it may agree to, by its card
	Currency    string      `json:"currency,omitzero"`            // of that
	Policy      *Policy     `json:"policy,omitzero"`              // of the broker: what it promises for the session's life
	Salt        string      `json:"salt,omitzero"`                // of a human whom a route has sealed: it shows that the route asks this one
	Route       *Route      `json:"route,omitzero"`               // of the broker: who decides the escalation that the entry opens, or rules on

	Limits  []Limit        `json:"-"` // of a human who may decide, as the registry has them
	Context jsontext.Value `json:"-"` // the context of its card (CCC), as the registry has it
}

// Minimal is the conformance level of an agent that knows INFORM, QUERY and CLOSE.
const Minimal = "minimal"

// Hosted is the custody of a key that the installation holds for its principal.
const Hosted = "hosted"

// The kinds of members.
const (
	KindSystem   = "system"
	KindPersonal = "personal"
	KindHuman    = "human"
	KindBroker   = "broker"
)

// The authorities of members that are no delegates; a delegate's is that of
// its DELEGATE.
const (
	AuthorityPrincipal = "principal"
	AuthorityDecide    = "decide"
	AuthorityStandby   = "standby"
	AuthorityBroker    = "broker"
	AuthorityArbiter   = "arbiter"
)

// Format is the version of the transcript's format: which rules a session keeps. Each
// refuses more than the one before; session.Command.Before has the lists.
const Format = 8

// NewerFormatError is for an entry that pins a format later than [Format]: its session keeps rules that this version
// does not know, so nobody may judge it by this version.
type NewerFormatError struct{ Pinned int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("the transcript has format %d; this version of parley reads formats 1 to %d", e.Pinned, Format)
}

// A Policy is pinned with the session's first entry, so that a replay judges
// like the broker did, whatever its configuration says by then. Times are in
// milliseconds.
type Policy struct {
	Format             int   `json:"format"`
	InvitationTimeout  int64 `json:"invitationTimeoutMs"`
	MaxDuration        int64 `json:"maxDurationMs"`
	EscalationLow      int64 `json:"escalationLowMs"`
	EscalationMedium   int64 `json:"escalationMediumMs"`
	EscalationHigh     int64 `json:"escalationHighMs"`
	EscalationCritical int64 `json:"escalationCriticalMs"`
	MaxPaused          int64 `json:"maxPausedMs"`
	ParkedTimeout      int64 `json:"parkedTimeoutMs,omitzero"` // after which a standby may take a turn
}

// TimeFormat writes acceptedAt: UTC, always nine digits, so that it sorts.
const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// Deliver puts the broker's fields on the message and has the receipt signed.
// It returns the entry's canonical bytes, which are what participants receive,
// and the stamp completed with hash and receipt.
func (m *Message) Deliver(s Stamp, acceptedAt time.Time, state string, broker Signer) ([]byte, Stamp, error) {
	if m.Link != nil && (m.Link.Sequence != s.Sequence || m.Link.PreviousHash != s.PreviousHash) {
		return nil, s, errLink
	}
	added, linkedBy := make(texts, 0, 640), LinkedBySender
	envelope, integrity := merge{a: m.envelope}, merge{a: m.integrity, b: make(document, 1, 6)} // the first is for the hash
	if len(s.Joined) > 0 {
		joined, err := marshalCanonical(s.Joined)
		if err != nil {
			return nil, s, err
		}
		integrity.b = append(integrity.b, added.field("joined", joined))
	}
	if m.Link == nil {
		linkedBy = LinkedByBroker
		envelope.b = document{added.field("sequenceNumber", strconv.AppendUint(nil, s.Sequence, 10))}
	}
	integrity.b = append(integrity.b, added.text("linkedBy", linkedBy))
	if s.OnBehalfOf != "" {
		integrity.b = append(integrity.b, added.text("onBehalfOf", string(s.OnBehalfOf)))
	}
	if m.Link == nil {
		integrity.b = append(integrity.b, added.text("previousHash", string(s.PreviousHash)))
	}
	var room [2048]byte
	s.Hash = HashOf(appendSealed(room[:0], envelope, merge{integrity.a, integrity.b[1:]}))
	s.Receipt = Receipt{AcceptedAt: acceptedAt.UTC().Format(TimeFormat), State: state, Broker: broker.Key()}
	var err error
	if s.Receipt.Signature, err = SignBytes(broker, s.receiptBytes()); err != nil {
		return nil, s, err
	}
	receipt := added.begin("receipt")
	added = s.Receipt.appendTo(added)
	integrity.b = append(integrity.b, added.end("receipt", receipt))
	integrity.b[0] = added.text("hash", string(s.Hash))
	return sealed(envelope, integrity), s, nil
}

var errLink = errors.New("the stamp's position in the transcript is not the one that the sender signed")

// receiptBytes are canonical by construction: sorted names, plain strings.
func (s *Stamp) receiptBytes() []byte {
	out := appendQuote(append(make([]byte, 0, 192), `{"acceptedAt":`...), s.Receipt.AcceptedAt)
	out = appendQuote(append(out, `,"hash":`...), string(s.Hash))
	return append(appendQuote(append(out, `,"state":`...), s.Receipt.State), '}')
}

// appendTo writes the receipt as it stands in an entry.
func (r Receipt) appendTo(out []byte) []byte {
	out = appendQuote(append(out, `{"acceptedAt":`...), r.AcceptedAt)
	out = appendQuote(append(out, `,"broker":`...), string(r.Broker))
	out = appendQuote(append(out, `,"signature":`...), r.Signature)
	return append(appendQuote(append(out, `,"state":`...), r.State), '}')
}

// VerifyReceipt checks the broker's signature on the entry.
func (s *Stamp) VerifyReceipt(broker Key) error {
	return VerifyBytes(broker, s.receiptBytes(), s.Receipt.Signature)
}

// AcceptedAt is when the broker accepted the entry.
func (s *Stamp) AcceptedAt() (time.Time, error) { return parseTime(s.Receipt.AcceptedAt) }

// ReadDelivered reads an entry: the message as its sender made it, and the
// broker's stamp. recomputed is the hash that the entry's bytes really have.
func ReadDelivered(data []byte) (m *Message, s Stamp, recomputed Hash, err error) {
	if len(data) > 4*MaxEnvelope {
		return nil, s, "", ErrTooLarge
	}
	canonical, err := ijson.Canonical(data)
	if err != nil {
		return nil, s, "", err
	}
	if canonical.Kind() != '{' {
		return nil, s, "", malformed("", "want a JSON object")
	}
	envelope, err := split(nil, canonical)
	if err != nil {
		return nil, s, "", malformed("", "not I-JSON")
	}
	raw := envelope.get("integrity")
	if raw.Kind() != '{' {
		return nil, s, "", malformed("/integrity", "is missing")
	}
	integrity, err := split(nil, raw)
	if err != nil {
		return nil, s, "", malformed("/integrity", "not I-JSON")
	}
	linkedBy, err := s.read(raw, envelope.get("sequenceNumber"))
	if err != nil {
		return nil, s, "", err
	}
	envelope = envelope.without("integrity")
	recomputed = HashOf(sealed(merge{a: envelope}, merge{a: integrity.without("hash", "receipt")}))
	if linkedBy == LinkedByBroker {
		envelope = envelope.without("sequenceNumber")
		integrity = integrity.without("previousHash")
	}
	if m, err = readCanonical(sealed(merge{a: envelope}, merge{a: integrity.without(brokersFields...)})); err != nil {
		return nil, s, "", err
	}
	return m, s, recomputed, nil
}

func (s *Stamp) read(integrity, sequence jsontext.Value) (linkedBy string, err error) {
	var w struct {
		PreviousHash Hash     `json:"previousHash"`
		LinkedBy     string   `json:"linkedBy"`
		OnBehalfOf   Agent    `json:"onBehalfOf"`
		Joined       []Member `json:"joined"`
		Hash         Hash     `json:"hash"`
		Receipt      Receipt  `json:"receipt"`
	}
	if err := Unmarshal(integrity, &w, "/integrity"); err != nil {
		return "", err
	}
	if err := w.Receipt.exact(integrity); err != nil {
		return "", err
	}
	if sequence.Kind() != '0' || json.Unmarshal(sequence, &s.Sequence) != nil {
		return "", malformed("/sequenceNumber", "want a whole number from 0")
	}
	if w.LinkedBy != LinkedBySender && w.LinkedBy != LinkedByBroker {
		return "", malformed("/integrity/linkedBy", "want sender or broker")
	}
	for _, member := range w.Joined {
		if member.Policy != nil && member.Policy.Format > Format {
			return "", &NewerFormatError{member.Policy.Format}
		}
	}
	s.PreviousHash, s.OnBehalfOf, s.Joined, s.Hash, s.Receipt = w.PreviousHash, w.OnBehalfOf, w.Joined, w.Hash, w.Receipt
	return w.LinkedBy, nil
}

// exact refuses a receipt that holds anything but its four fields: a receipt
// is not part of the hash, so nothing may hide in it.
func (r Receipt) exact(integrity jsontext.Value) error {
	var raw struct {
		Receipt jsontext.Value `json:"receipt"`
	}
	if err := Unmarshal(integrity, &raw, "/integrity"); err != nil {
		return err
	}
	if !Equal(raw.Receipt, r.appendTo(nil)) {
		return malformed("/integrity/receipt", "is not a receipt")
	}
	return nil
}

func marshalCanonical(v any) (jsontext.Value, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return ijson.Canonicalise(raw)
}

// appendQuote writes a JSON string as RFC 8785 does.
func appendQuote(out []byte, s string) []byte {
	out, err := jsontext.AppendQuote(out, s)
	if err != nil { // only for invalid UTF-8, which no value of ours has
		panic("performatives: " + err.Error())
	}
	return out
}
