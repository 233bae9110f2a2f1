package evidence_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

// recorded is a transcript of package test/formats.
func recorded(t *testing.T, name string) (lines []jsontext.Value, broker performatives.Key) {
	t.Helper()
	file := "../../test/formats/testdata/" + name + ".jsonl"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(filepath.Dir(file), "broker.key"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.SplitSeq(bytes.TrimSpace(data), []byte("\n")) {
		lines = append(lines, line)
	}
	return lines, performatives.Key(bytes.TrimSpace(key))
}

func made(t *testing.T) ([]byte, evidence.Trust) {
	t.Helper()
	lines, broker := recorded(t, "7/delivery") // half a delivery, a breach, a dispute and its decision
	b, err := evidence.Make(lines, nil)
	if err != nil {
		t.Fatal(err)
	}
	trust := evidence.Trust{Trust: agreement.Trust{Broker: broker, Log: publish(t, &b)}}
	return bytesOf(t, b), trust
}

func bytesOf(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// publish puts the leaves of a bundle into a log of its own, and returns the log's key.
func publish(t *testing.T, b *evidence.Bundle) note.Verifier {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(line jsontext.Value) string {
		e, err := transcript.Read(line)
		must(err)
		return e.Stamp.Receipt.AcceptedAt
	}
	secret, public, err := note.GenerateKey(rand.Reader, "acme.com/log")
	must(err)
	signer, err := note.NewSigner(secret)
	must(err)
	key, err := inclusion.NewReceiptKey(bytes.Repeat([]byte{7}, 32))
	must(err)
	ended, err := inclusion.Leaf{Type: inclusion.Session, Hash: string(b.Head), At: at(b.Transcript[len(b.Transcript)-1])}.Bytes()
	must(err)
	accepted, err := transcript.Read(b.Agreements[0].Evidence.Acceptance)
	must(err)
	agreed, err := b.Agreements[0].Leaf(accepted.Stamp.Receipt.AcceptedAt, agreement.Publish{})
	must(err)
	leaves := [][]byte{[]byte("one of others"), agreed, ended}
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (all []tlog.Hash, err error) {
		for _, i := range indexes {
			all = append(all, hashes[i])
		}
		return all, nil
	})
	for i, leaf := range leaves {
		stored, err := tlog.StoredHashes(int64(i), leaf, reader)
		must(err)
		hashes = append(hashes, stored...)
	}
	c := inclusion.Checkpoint{Origin: "acme.com/log", Tree: tlog.Tree{N: int64(len(leaves))}}
	c.Tree.Hash, err = tlog.TreeHash(c.Tree.N, reader)
	must(err)
	signed, err := note.Sign(&note.Note{Text: c.Text()}, signer)
	must(err)
	root, err := key.Sign(c)
	must(err)
	must(b.Logged(key.PEM(), func(kind inclusion.Kind, _ string) (*inclusion.Proof, []byte, error) {
		index := int64(1)
		if kind == inclusion.Session {
			index = 2
		}
		path, err := tlog.ProveRecord(c.Tree.N, index, reader)
		must(err)
		receipt, err := root.Receipt(c.Tree.N, index, path)
		p := inclusion.New(index, leaves[index], string(signed), path)
		return &p, receipt, err
	}))
	verifier, err := inclusion.ParseKey(public)
	must(err)
	return verifier
}

// A bundle says as of when it tells, and what it cannot prove.
func TestAsOf(t *testing.T) {
	t.Parallel()
	data, trust := made(t)
	var b evidence.Bundle
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	b.Ended, b.Receipts.Session = nil, nil
	b.Sealed = map[performatives.MessageID]performatives.SealedParts{"none": {}}
	r := evidence.Verify(bytesOf(t, b), trust)
	if len(r.Faults) != 1 || r.Faults[0].Member != "/sealed/none" {
		t.Errorf("with sealed parts of no entry: %v", r.Faults)
	}
	b.Sealed, trust.Receipts = nil, nil
	said := strings.Join(strings.Fields(render.Evidence(evidence.Verify(bytesOf(t, b), trust), render.Style{})), " ")
	for _, want := range []string{", as of 20", "the session's end has no position in the public log", "verify --receipt-key says whose they have to be"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	cut, err := evidence.Make(b.Transcript[:3], nil)
	if err != nil {
		t.Fatal(err)
	}
	if said := render.Evidence(evidence.Verify(bytesOf(t, cut), trust), render.Style{}); !strings.Contains(said, "what came after that, it cannot tell") {
		t.Errorf("of a session that goes on it says\n%s", said)
	}
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
	if r.Logged != 2 {
		t.Errorf("%d leaves are in the log, want those of the agreement and the end", r.Logged)
	}
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
	t.Run("whole", func(t *testing.T) { t.Parallel(); changesAreFound(t, file, trust, 400) })
	t.Run("redacted", func(t *testing.T) {
		t.Parallel()
		var b evidence.Bundle
		if err := json.Unmarshal(file, &b); err != nil {
			t.Fatal(err)
		}
		b, err := b.Redact("obligations")
		if err != nil {
			t.Fatal(err)
		}
		b.Disputes = nil // nobody can compute them again
		changesAreFound(t, bytesOf(t, b), trust, 150)
	})
}

func changesAreFound(t *testing.T, file []byte, trust evidence.Trust, least int) {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal(file, &whole); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(whole, json.Deterministic(true)) // in the order of a map
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	entries := whole["transcript"].([]any) //nolint:forcetypeassert // it is one
	all := changes(entries[4])
	all = append(all, changes(entries[len(entries)-1])...) // each single entry is the concern of package transcript
	delete(whole, "transcript")
	all = append(all, changes(whole)...)
	whole["transcript"] = entries
	for _, c := range all {
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
	if changed < least {
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

// That a bundle is another broker's is said once, and what else is wrong with it beside.
func TestAnotherBroker(t *testing.T) {
	t.Parallel()
	file, trust := made(t)
	trust.Broker = "UC3SKXRAI3DPYBP2ECEGWSQDBWYRSOCNFTUNDAMXAFTS5BO2FTZZSG4F"
	if r := evidence.Verify(file, trust); len(r.Faults) != 1 || r.Faults[0].Member != "/broker" || !strings.Contains(r.Faults[0].Why, "17 in all") {
		t.Errorf("it finds %v", r.Faults)
	}
	changed := bytes.Replace(file, []byte(`"status":"late"`), []byte(`"status":"fulfilled"`), 1)
	if r := evidence.Verify(changed, trust); len(r.Faults) != 2 || r.Faults[1].Member != "/obligations/0" {
		t.Errorf("of a changed bundle it finds %v", r.Faults)
	}
}

// Each entry that is left out is found.
func TestEntriesLeftOut(t *testing.T) {
	t.Parallel()
	file, trust := made(t)
	var whole evidence.Bundle
	if err := json.Unmarshal(file, &whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole.Transcript {
		b := whole
		b.Transcript = append(append([]jsontext.Value(nil), whole.Transcript[:i]...), whole.Transcript[i+1:]...)
		if r := evidence.Verify(bytesOf(t, b), trust); len(r.Faults) == 0 {
			t.Errorf("entry %d was left out, and nobody noticed", i)
		}
	}
}
