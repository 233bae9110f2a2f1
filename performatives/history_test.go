package performatives

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

var rotatedAt = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// rotated is a history of three keys.
func rotated(t testing.TB) (h KeyHistory, keys []Signer) {
	t.Helper()
	for i := range 3 {
		keys = append(keys, testKey(t, fmt.Sprint("broker ", i)))
	}
	for i, next := range keys[1:] {
		var err error
		if h, err = h.Rotate(keys[i], next, rotatedAt.AddDate(0, i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return h, keys
}

func TestKeyHistory(t *testing.T) {
	t.Parallel()
	h, keys := rotated(t)
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadKeyHistory(text)
	if err != nil || !slices.Equal(read, h) || h.Oldest() != keys[0].Key() || h.Newest() != keys[2].Key() {
		t.Fatalf("%v, %v", read, err)
	}
	for _, k := range keys { // whichever is trusted
		trusted, err := h.Trust(k.Key())
		if err != nil || len(trusted.Keys()) != 3 {
			t.Errorf("%s: %v, %v", k.Key(), trusted, err)
		}
	}
	another := testKey(t, "mallory")
	if trusted, err := h.Trust(another.Key()); !errors.Is(err, ErrUntrusted) || !trusted.IsZero() {
		t.Errorf("%v, %v", trusted, err)
	}
}

func TestForgedHistory(t *testing.T) {
	t.Parallel()
	mallory := testKey(t, "mallory")
	by := func(r *KeyRecord, old, next Signer) {
		signed, err := r.SigningBytes()
		if err != nil {
			t.Fatal(err)
		}
		r.Signature, _ = SignBytes(old, signed)
		r.Proof, _ = SignBytes(next, signed)
	}
	for name, forge := range map[string]func(h KeyHistory, keys []Signer) KeyHistory{
		"a predecessor that the key does not name": func(h KeyHistory, keys []Signer) KeyHistory {
			r := KeyRecord{Key: keys[0].Key(), Previous: mallory.Key(), Since: rotatedAt.Format(TimeFormat)}
			by(&r, mallory, mallory) // the trusted key has not signed it
			return KeyHistory{{Key: mallory.Key()}, r}
		},
		"a successor that the key before does not name": func(h KeyHistory, _ []Signer) KeyHistory {
			r := KeyRecord{Key: mallory.Key(), Previous: h.Newest(), Since: rotatedAt.AddDate(1, 0, 0).Format(TimeFormat)}
			by(&r, mallory, mallory)
			return append(h, r)
		},
		"another's key as successor": func(h KeyHistory, keys []Signer) KeyHistory {
			r := KeyRecord{Key: mallory.Key(), Previous: h.Newest(), Since: rotatedAt.AddDate(1, 0, 0).Format(TimeFormat)}
			by(&r, keys[2], keys[2])
			return append(h, r)
		},
		"a gap": func(h KeyHistory, _ []Signer) KeyHistory { return slices.Delete(h, 1, 2) },
		"a fork": func(h KeyHistory, keys []Signer) KeyHistory {
			r := KeyRecord{Key: mallory.Key(), Previous: keys[1].Key(), Since: rotatedAt.AddDate(1, 0, 0).Format(TimeFormat)}
			by(&r, keys[1], mallory)
			return append(h, r)
		},
		"out of order":        func(h KeyHistory, _ []Signer) KeyHistory { h[1], h[2] = h[2], h[1]; return h },
		"a beginning cut off": func(h KeyHistory, _ []Signer) KeyHistory { return h[1:] },
		"a key twice": func(h KeyHistory, keys []Signer) KeyHistory {
			r := KeyRecord{Key: keys[0].Key(), Previous: keys[2].Key(), Since: rotatedAt.AddDate(1, 0, 0).Format(TimeFormat)}
			by(&r, keys[2], keys[0])
			return append(h, r)
		},
		"another time": func(h KeyHistory, _ []Signer) KeyHistory {
			h[1].Since = rotatedAt.Add(time.Second).Format(TimeFormat)
			return h
		},
		"a time before": func(h KeyHistory, keys []Signer) KeyHistory {
			h[2].Since = h[1].Since
			by(&h[2], keys[1], keys[2])
			return h
		},
		"a time in another form": func(h KeyHistory, keys []Signer) KeyHistory {
			h[1].Since = rotatedAt.Format(time.RFC3339)
			by(&h[1], keys[0], keys[1])
			return h
		},
		"no key":                func(h KeyHistory, _ []Signer) KeyHistory { h[0].Key = "U"; return h },
		"a first one with more": func(h KeyHistory, _ []Signer) KeyHistory { h[0].Since = h[1].Since; return h },
		"too many":              func(h KeyHistory, _ []Signer) KeyHistory { return append(h, make(KeyHistory, MaxKeys)...) },
		"none":                  func(KeyHistory, []Signer) KeyHistory { return KeyHistory{} },
	} {
		h, keys := rotated(t)
		forged := forge(h, keys)
		text, err := json.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		var why *HistoryError
		if _, err := ReadKeyHistory(text); !errors.As(err, &why) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := forged.Trust(keys[1].Key()); len(forged) > 0 && !errors.As(err, &why) {
			t.Errorf("%s is trusted: %v", name, err)
		}
	}
	if _, err := ReadKeyHistory([]byte(`[{"key":"U","more":1}]`)); err == nil {
		t.Error("a record with more is read")
	}
}

// Each key signs in its time, give or take what clocks differ by.
func TestKeyInItsTime(t *testing.T) {
	t.Parallel()
	h, keys := rotated(t)
	trusted, err := h.Trust(keys[0].Key())
	if err != nil {
		t.Fatal(err)
	}
	second := rotatedAt.AddDate(0, 1, 0)
	for _, c := range []struct {
		by   int
		at   time.Time
		good bool
	}{
		{0, rotatedAt.AddDate(-9, 0, 0), true},
		{0, rotatedAt.Add(KeySkew), true},
		{0, rotatedAt.Add(KeySkew + 1), false},
		{1, rotatedAt.Add(-KeySkew), true},
		{1, rotatedAt.Add(-KeySkew - 1), false},
		{1, second.Add(KeySkew + 1), false},
		{2, second.Add(-KeySkew - 1), false},
		{2, second.AddDate(9, 0, 0), true},
	} {
		s := Stamp{Hash: NoHash, Receipt: Receipt{AcceptedAt: c.at.Format(TimeFormat), State: "IDLE", Broker: keys[c.by].Key()}}
		if s.Receipt.Signature, err = SignBytes(keys[c.by], s.receiptBytes()); err != nil {
			t.Fatal(err)
		}
		var untimely *UntimelyError
		if err := trusted.VerifyReceipt(&s); c.good && err != nil || !c.good && !errors.As(err, &untimely) {
			t.Errorf("key %d at %s: %v", c.by, s.Receipt.AcceptedAt, err)
		}
		if s.Receipt.Broker = keys[(c.by+1)%3].Key(); trusted.VerifyReceipt(&s) == nil {
			t.Error("a receipt holds by a key that did not sign it")
		}
	}
}
