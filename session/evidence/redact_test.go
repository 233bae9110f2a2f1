package evidence_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

// What is redacted is nowhere in the file, and what is left proves itself.
func TestRedact(t *testing.T) {
	t.Parallel()
	file, trust := made(t)
	var whole evidence.Bundle
	if err := json.Unmarshal(file, &whole); err != nil {
		t.Fatal(err)
	}
	whole.Sealed = map[performatives.MessageID]performatives.SealedParts{"m": {}}
	for _, name := range []string{"nothing", "terms", "subject"} {
		if _, err := whole.Redact(name); err == nil {
			t.Errorf("%q, which is no term, was redacted", name)
		}
	}
	b, err := whole.Redact("terms.obligations")
	if err != nil {
		t.Fatal(err)
	}
	data := bytesOf(t, b)
	r := evidence.Verify(data, trust)
	if len(r.Faults) > 0 || r.Withheld == 0 || r.Logged != 2 {
		t.Errorf("%d entries are withheld, %d leaves logged, faults: %v", r.Withheld, r.Logged, r.Faults)
	}
	if bytes.Contains(data, whole.Agreements[0].Evidence.Offer) {
		t.Error("it has the offer, of which the salts of all terms derive")
	}
	if b.Sealed != nil {
		t.Error("it has what was sealed, such as a hash of the terms")
	}
	forged := b
	forged.Sealed = map[performatives.MessageID]performatives.SealedParts{"m": {}}
	if r := evidence.Verify(bytesOf(t, forged), trust); len(r.Faults) != 1 || r.Faults[0].Member != "/sealed" {
		t.Errorf("with sealed parts of entries that are withheld: %v", r.Faults)
	}
	if bytes.Contains(data, []byte(whole.Obligations[0].Action)) {
		t.Errorf("it tells %q", whole.Obligations[0].Action)
	}
}

// Whoever passes a bundle on may withhold an entry and invent what nobody can compute again: that is only claimed.
func TestWithheldIsClaimed(t *testing.T) {
	t.Parallel()
	file, trust := made(t)
	var b evidence.Bundle
	if err := json.Unmarshal(file, &b); err != nil {
		t.Fatal(err)
	}
	if r := evidence.Verify(file, trust); len(r.Claimed) > 0 {
		t.Errorf("of a whole bundle it is only claimed: %v", r.Claimed)
	}
	e, err := transcript.Read(b.Transcript[9])
	if err != nil {
		t.Fatal(err)
	}
	b.Transcript[9] = bytesOf(t, map[string]any{"withheld": map[string]any{"hash": e.Stamp.Hash, "receipt": e.Stamp.Receipt}})
	b.Obligations[0].Status, b.Disputes[0].Status = "breached", "upheld"
	r := evidence.Verify(bytesOf(t, b), trust)
	if len(r.Faults) > 0 || !slices.Equal(r.Claimed, []string{"/obligations/0", "/obligations/1", "/disputes/0"}) {
		t.Errorf("claimed: %v, faults: %v", r.Claimed, r.Faults)
	}
	said := render.Evidence(r, render.Style{})
	if strings.Count(said, "  claimed, not proven: ") != 3 || !strings.Contains(said, "\nNot proven: what is claimed above") || strings.Contains(said, "It holds") {
		t.Errorf("it says\n%s", said)
	}
}

// What people were asked and decided tells terms, and so do questions about them.
func TestRedactTakesWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		term string
		says []string
	}{
		"2/escalation":          {"pricePerMonth", []string{`"maxAmount":15000`, "$15,000/month", "Approved at $15k"}},
		"4/clarification-round": {"consistencyLevel", []string{"terms.consistencyLevel", "linearizable"}},
	} {
		lines, _ := recorded(t, name)
		whole, err := evidence.Make(lines, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := whole.Redact(c.term)
		if err != nil {
			t.Fatal(err)
		}
		before, after := bytesOf(t, whole), bytesOf(t, b)
		for _, text := range c.says {
			if !bytes.Contains(before, []byte(text)) || bytes.Contains(after, []byte(text)) {
				t.Errorf("%s: without %s: %q: %t, and before %t", name, c.term, text, bytes.Contains(after, []byte(text)), bytes.Contains(before, []byte(text)))
			}
		}
	}
}
