package evidence_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/evidence"
)

// delivery is the transcript of a demo: half a delivery, a breach, a dispute and its decision.
func delivery(t *testing.T) (lines [][]byte, broker performatives.Key) {
	t.Helper()
	data, err := os.ReadFile("../../test/formats/testdata/7/delivery.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile("../../test/formats/testdata/7/broker.key")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n")), performatives.Key(bytes.TrimSpace(key))
}

func made(t *testing.T) ([]byte, agreement.Trust) {
	t.Helper()
	lines, broker := delivery(t)
	b, err := evidence.Make(lines, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(b, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return data, agreement.Trust{Broker: broker}
}

// What it says is what happened, and it proves itself.
func TestBundle(t *testing.T) {
	t.Parallel()
	data, trust := made(t)
	r := evidence.Verify(data, trust)
	if len(r.Faults) > 0 {
		t.Fatalf("a bundle that is genuine has faults: %v", r.Faults)
	}
	b := r.Bundle
	if len(b.Agreements) != 1 || len(b.Obligations) != 2 || len(b.Disputes) != 1 || len(b.Transcript) != 17 {
		t.Fatalf("it has %d agreements, %d obligations, %d disputes, %d entries", len(b.Agreements), len(b.Obligations), len(b.Disputes), len(b.Transcript))
	}
	cups, cracked := b.Obligations[0], b.Disputes[0]
	if cups.Status != "late" || cups.Breaches != 1 || !strings.Contains(jsonOf(t, cups.Entries), "6,7,8,9") || cracked.Status != "split" || jsonOf(t, cracked.Entries) != "[9,10,11,12]" {
		t.Errorf("%+v %+v", cups, cracked)
	}
}

// Any value that is another one, and any entry that is gone, is found and named.
func TestChangesAreFound(t *testing.T) {
	t.Parallel()
	file, trust := made(t)
	var whole map[string]any
	if err := json.Unmarshal(file, &whole); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(whole, json.Deterministic(true)) // in the order of a map
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, c := range changes(whole) {
		undo := c()
		other, err := json.Marshal(whole, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		undo()
		if bytes.Equal(other, data) {
			continue
		}
		changed++
		if r := evidence.Verify(other, trust); len(r.Faults) == 0 {
			t.Errorf("a change was not found:\n%s", difference(data, other))
		}
	}
	if changed < 500 {
		t.Errorf("only %d changes were tried", changed)
	}
	t.Logf("%d changes were found", changed)
}

// changes are all single changes of a document: one value another, or gone.
func changes(v any) (all []func() (undo func())) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			all = append(all,
				func() func() { delete(v, name); return func() { v[name] = value } },
				func() func() { v[name] = another(value); return func() { v[name] = value } })
			all = append(all, changes(value)...)
		}
	case []any:
		for i, value := range v {
			all = append(all, func() func() { v[i] = another(value); return func() { v[i] = value } })
			all = append(all, changes(value)...)
		}
	}
	return all
}

func another(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case float64:
		return v + 1
	case bool:
		return !v
	case []any:
		return v[:max(len(v)-1, 0)]
	}
	return "x"
}

func difference(a, b []byte) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return string(a[max(0, i-60):min(len(a), i+60)]) + "\n" + string(b[max(0, i-60):min(len(b), i+60)])
		}
	}
	return "one is longer"
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v, jsontext.Multiline(false))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each entry that is left out is found.
func TestEntriesLeftOut(t *testing.T) {
	t.Parallel()
	lines, broker := delivery(t)
	whole, err := evidence.Make(lines, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		b := whole
		b.Transcript = append(append([]jsontext.Value(nil), whole.Transcript[:i]...), whole.Transcript[i+1:]...)
		data, err := json.Marshal(b, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if r := evidence.Verify(data, agreement.Trust{Broker: broker}); len(r.Faults) == 0 {
			t.Errorf("entry %d was left out, and nobody noticed", i)
		}
	}
}
