package performatives

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// A KeyRecord is one key that a broker signs receipts with.
type KeyRecord struct {
	Key       Key    `json:"key"`
	Previous  Key    `json:"previous,omitzero"`  // the key before; absent from the first
	Since     string `json:"since,omitzero"`     // when it took the place of the one before, in [TimeFormat]
	Signature string `json:"signature,omitzero"` // of the previous key
	Proof     string `json:"proof,omitzero"`     // of this key, over the same bytes
}

// A KeyHistory is every key that a broker has signed receipts with, the first one first. Each record
// but the first is signed by both keys: the one before says what follows it, and the one after what
// it follows. So whoever trusts one key of a history knows the others.
type KeyHistory []KeyRecord

// MaxKeys is how many keys a history may have.
const MaxKeys = 1000

// KeySkew is how long after its successor's since a key may still sign, and how long before its own:
// clocks differ.
const KeySkew = 5 * time.Minute

// keyPrefix keeps a record apart from all else that a broker signs, which is JSON.
const keyPrefix = "parley broker key\n"

// SigningBytes are the bytes that both keys sign.
func (r KeyRecord) SigningBytes() ([]byte, error) {
	canonical, err := marshalCanonical(struct {
		Key      Key    `json:"key"`
		Previous Key    `json:"previous"`
		Since    string `json:"since"`
	}{r.Key, r.Previous, r.Since})
	return append([]byte(keyPrefix), canonical...), err
}

// A HistoryError is why a history is not genuine.
type HistoryError struct {
	Record int // from 0
	Why    string
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("the history of the broker's keys: record %d: %s", e.Record, e.Why)
}

// ErrUntrusted is for a history without the key that the verifier trusts.
var ErrUntrusted = errors.New("the history of the broker's keys does not have the trusted key")

// ReadKeyHistory reads a history as JSON, and checks it.
func ReadKeyHistory(text []byte) (h KeyHistory, err error) {
	if err := json.Unmarshal(text, &h, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("no history of a broker's keys: %w", err)
	}
	if len(h) == 0 {
		return nil, &HistoryError{0, "a history has at least one"}
	}
	return h, h.Check()
}

// Oldest is the key that signed first, "" of an empty history.
func (h KeyHistory) Oldest() Key {
	if len(h) == 0 {
		return ""
	}
	return h[0].Key
}

// Newest is the key that signs now, "" of an empty history.
func (h KeyHistory) Newest() Key {
	if len(h) == 0 {
		return ""
	}
	return h[len(h)-1].Key
}

// Has reports whether a key is in the history.
func (h KeyHistory) Has(k Key) bool {
	return slices.ContainsFunc(h, func(r KeyRecord) bool { return r.Key == k })
}

// Check returns a *[HistoryError] unless each key was named by the one before and names it.
func (h KeyHistory) Check() error {
	if len(h) > MaxKeys {
		return &HistoryError{MaxKeys, fmt.Sprintf("a history has at most %d", MaxKeys)}
	}
	seen, since := map[Key]bool{}, time.Time{}
	for i, r := range h {
		fault := func(why string, args ...any) error { return &HistoryError{i, fmt.Sprintf(why, args...)} }
		switch {
		case !r.Key.Valid():
			return fault("%.60q is no key", string(r.Key))
		case seen[r.Key]:
			return fault("%s is there twice", r.Key)
		case i == 0 && r != (KeyRecord{Key: r.Key}):
			return fault("it follows a key that is not there")
		}
		seen[r.Key] = true
		if i == 0 {
			continue
		}
		at, err := time.Parse(TimeFormat, r.Since)
		switch {
		case r.Previous != h[i-1].Key:
			return fault("it follows %.60q, and not %s before it", string(r.Previous), h[i-1].Key)
		case err != nil || at.Format(TimeFormat) != r.Since:
			return fault("since is %.60q; want UTC with nine digits after the second", r.Since)
		case !at.After(since):
			return fault("it is not later than the record before")
		}
		since = at
		signed, err := r.SigningBytes()
		switch {
		case err != nil:
			return fault("%v", err)
		case VerifyBytes(r.Previous, signed, r.Signature) != nil:
			return fault("the key before, %s, did not sign it", r.Previous)
		case VerifyBytes(r.Key, signed, r.Proof) != nil:
			return fault("its own key, %s, did not sign it", r.Key)
		}
	}
	return nil
}

// Rotate returns the history with another key, which takes the place of the newest at a time. An empty
// history begins with old.
func (h KeyHistory) Rotate(old, next Signer, at time.Time) (KeyHistory, error) {
	if len(h) == 0 {
		h = KeyHistory{{Key: old.Key()}}
	}
	r := KeyRecord{Key: next.Key(), Previous: old.Key(), Since: at.UTC().Format(TimeFormat)}
	signed, err := r.SigningBytes()
	if err != nil {
		return nil, err
	}
	if r.Signature, err = SignBytes(old, signed); err != nil {
		return nil, err
	}
	if r.Proof, err = SignBytes(next, signed); err != nil {
		return nil, err
	}
	longer := append(slices.Clone(h), r)
	return longer, longer.Check()
}

// Trust returns the keys that a verifier accepts who trusts one of them. An empty history is that key
// alone. The error is a *[HistoryError], or [ErrUntrusted].
func (h KeyHistory) Trust(k Key) (TrustedKeys, error) {
	if len(h) == 0 {
		return Trust(k), nil
	}
	if err := h.Check(); err != nil {
		return TrustedKeys{}, err
	}
	if !h.Has(k) {
		return TrustedKeys{}, fmt.Errorf("%w, %s", ErrUntrusted, k)
	}
	t := TrustedKeys{times: map[Key]term{}}
	for i, r := range h {
		var in term
		if i > 0 {
			in.from, _ = parseTime(r.Since)
		}
		if i+1 < len(h) {
			in.until, _ = parseTime(h[i+1].Since)
		}
		t.times[r.Key] = in
	}
	return t, nil
}

// TrustedKeys are the keys of one broker whose receipts a verifier accepts, each in its time. The zero
// value trusts none.
type TrustedKeys struct{ times map[Key]term }

// A term is when a key signed; a zero time has no bound.
type term struct{ from, until time.Time }

// Trust trusts one key at all times.
func Trust(k Key) TrustedKeys { return TrustedKeys{map[Key]term{k: {}}} }

// IsZero reports whether no key is trusted.
func (t TrustedKeys) IsZero() bool { return len(t.times) == 0 }

// Has reports whether a key is trusted at any time.
func (t TrustedKeys) Has(k Key) bool {
	_, has := t.times[k]
	return has
}

// Or trusts one key if no other is.
func (t TrustedKeys) Or(k Key) TrustedKeys {
	if t.IsZero() {
		return Trust(k)
	}
	return t
}

// Keys are the trusted keys.
func (t TrustedKeys) Keys() []Key { return slices.Sorted(maps.Keys(t.times)) }

// VerifyReceipt checks that one of the keys signed the receipt, in its time.
func (t TrustedKeys) VerifyReceipt(s *Stamp) error {
	k := s.Receipt.Broker
	in, has := t.times[k]
	if !has {
		return fmt.Errorf("the receipt is by %q, which is not a key of this broker", k)
	}
	if err := s.VerifyReceipt(k); err != nil {
		return err
	}
	if in == (term{}) {
		return nil
	}
	at, err := s.AcceptedAt()
	switch {
	case err != nil:
		return err
	case !in.until.IsZero() && at.After(in.until.Add(KeySkew)):
		return &UntimelyError{k, at, in.until, true}
	case at.Before(in.from.Add(-KeySkew)):
		return &UntimelyError{k, at, in.from, false}
	}
	return nil
}

// An UntimelyError is for a receipt that a key of the broker's signed when another one was in its place.
type UntimelyError struct {
	Key      Key
	At       time.Time // of the receipt
	Bound    time.Time // when Key was replaced, or began
	Replaced bool
}

func (e *UntimelyError) Error() string {
	did := "signs since"
	if e.Replaced {
		did = "was replaced at"
	}
	return fmt.Sprintf("the receipt of %s is by the key %s, which %s %s", e.At.Format(time.RFC3339), e.Key, did, e.Bound.Format(time.RFC3339))
}
