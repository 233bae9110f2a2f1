package vectors

import (
	"bytes"
	"encoding/base64"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	evidences "github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

// The files are what the generator makes now.
func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go generate makes; explain the difference, then run it: %v", name, err)
		}
	}
}

// read reads a file as any other implementation would.
func read[T any](t *testing.T, name string) (content T) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &content, json.RejectUnknownMembers(true))
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]Envelope](t, "envelopes.json") {
		m, err := performatives.Read([]byte(v.Envelope))
		got := ""
		switch {
		case err != nil:
			got = "malformed"
		case m.VerifySignature(v.Key) != nil:
			got = "signature"
		case string(m.SigningBytes()) != v.Signed:
			t.Errorf("%s: other bytes are signed: %s", v.Name, m.SigningBytes())
		}
		if got != v.Refused {
			t.Errorf("%s: refused by %q, want %q: %v", v.Name, got, v.Refused, err)
		}
	}
}

func TestMessageIDs(t *testing.T) {
	t.Parallel()
	ids := map[performatives.MessageID]bool{}
	for _, v := range read[[]Decision](t, "messageids.json") {
		canonical, id, err := v.derived()
		if err != nil || canonical != v.Canonical || id != v.Message || ids[id] {
			t.Errorf("%s of %s: %v", id, canonical, err)
		}
		ids[id] = true
	}
}

func TestBrokerKeys(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]BrokerKeys](t, "brokerkeys.json") {
		if _, err := v.Keys.Trust(v.Broker); (err != nil) != v.Refused {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]Transcript](t, "transcripts.json") {
		keys, err := v.BrokerKeys.Trust(v.Broker)
		if err != nil {
			t.Fatal(err)
		}
		found, err := transcript.Verify(strings.NewReader(strings.Join(v.Entries, "\n")+"\n"), v.Broker, transcript.Expect{Session: v.Session, Head: v.Head, Length: v.Length, BrokerKeys: keys})
		if err != nil {
			t.Fatal(err)
		}
		var faults []Fault
		for _, f := range found {
			faults = append(faults, Fault{f.Line, f.Rule})
		}
		for i, line := range v.Entries {
			e, err := transcript.ReadOpened([]byte(line), v.Sealed)
			switch {
			case e.Message == nil: // a fault already
			case err != nil:
				faults = append(faults, Fault{i + 1, Sealed})
			case v.Opened[e.Message.ID] != nil && !sameJSON(t, e.Message.OpenBody(), v.Opened[e.Message.ID]):
				t.Errorf("%s: line %d opens to %s", v.Name, i+1, e.Message.OpenBody())
			}
		}
		if diff := cmp.Diff(v.Refused, faults); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", v.Name, diff)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	one, err := performatives.Canonical(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := performatives.Canonical(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

func TestAgreements(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]Agreement](t, "agreements.json") {
		trust := agreement.Trust{Broker: v.Broker, Keys: v.Keys}
		if v.LogKey != "" {
			var err error
			if trust.Log, err = inclusion.ParseKey(v.LogKey); err != nil {
				t.Fatal(err)
			}
		}
		report := agreement.Verify(v.Document, trust)
		report.Demand(trust)
		var members []string
		for _, f := range report.Faults {
			members = append(members, f.Member)
		}
		if diff := cmp.Diff(v.Refused, slices.Compact(members)); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", v.Name, report.Faults, diff)
		}
		if len(v.Refused) > 0 {
			continue
		}
		proves := "digests"
		switch {
		case len(report.Signed) == 2:
			proves = "signatures"
		case report.Document.Evidence.Offer != nil:
			proves = "entries"
		}
		if proves != v.Proves || !slices.Equal(report.Redacted, v.Redacted) || report.Logged != (v.LogKey != "") {
			t.Errorf("%s proves %s without %v, logged: %t", v.Name, proves, report.Redacted, report.Logged)
		}
	}
}

// What happened to each bundle is told, and each single change of it is found but those that the vectors name.
func TestEvidence(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]Evidence](t, "evidence.json") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			report := verified(t, v, v.Bundle)
			if len(v.Refused) > 0 {
				if !slices.ContainsFunc(report.Faults, func(f agreement.Fault) bool { return slices.Contains(v.Refused, f.Member) }) {
					t.Errorf("%v, want one of %v", report.Faults, v.Refused)
				}
				return
			}
			if len(report.Faults) > 0 || report.Logged != v.Logged || report.Withheld != v.Withheld {
				t.Errorf("%d leaves are logged, %d entries withheld, faults: %v", report.Logged, report.Withheld, report.Faults)
			}
			if v.Unproven == nil {
				return
			}
			var bundle map[string]any
			if err := json.Unmarshal(v.Bundle, &bundle); err != nil {
				t.Fatal(err)
			}
			unproven := []string{}
			Changes(bundle, func(name string) {
				data, err := json.Marshal(bundle, json.Deterministic(true))
				if err != nil {
					t.Fatal(err)
				}
				if len(verified(t, v, data).Faults) == 0 {
					unproven = append(unproven, name)
				}
			})
			slices.Sort(v.Unproven)
			slices.Sort(unproven)
			if diff := cmp.Diff(v.Unproven, unproven); diff != "" {
				t.Errorf("changes that are accepted (-want +got):\n%s", diff)
			}
		})
	}
}

func verified(t *testing.T, v Evidence, bundle []byte) evidences.Report {
	t.Helper()
	trust := evidences.Trust{Trust: agreement.Trust{Broker: v.Broker}}
	var err error
	if trust.Log, err = inclusion.ParseKey(v.LogKey); err != nil {
		t.Fatal(err)
	}
	if trust.Receipts, err = inclusion.ParseReceiptKey(v.ReceiptsKey); err != nil {
		t.Fatal(err)
	}
	return evidences.Verify(bundle, trust)
}

func TestPublicLog(t *testing.T) {
	t.Parallel()
	log := read[PublicLog](t, "publiclog.json")
	key, err := inclusion.ParseKey(log.Key)
	if err != nil {
		t.Fatal(err)
	}
	why := func(checkpoints []string, proof error) string {
		for _, c := range checkpoints {
			if _, err := inclusion.Open(c, key); err != nil {
				return "checkpoint"
			}
		}
		if proof != nil {
			return "proof"
		}
		return ""
	}
	for _, v := range log.Inclusion {
		// As agreement.get has it, the leaf is in canonical form.
		leaf, err := performatives.Canonical(v.Leaf)
		if err != nil {
			t.Fatal(err)
		}
		v.Leaf = leaf
		err = v.Verify(key)
		if got := why([]string{v.Checkpoint}, err); got != v.Refused {
			t.Errorf("%s: refused by %q, want %q: %v", v.Name, got, v.Refused, err)
		}
	}
	for _, v := range log.Consistency {
		err := extends(v, key)
		if got := why([]string{v.Old, v.New}, err); got != v.Refused {
			t.Errorf("%s: refused by %q, want %q: %v", v.Name, got, v.Refused, err)
		}
	}
}

// extends checks that the newer tree has all leaves of the older.
func extends(v Consistency, key note.Verifier) error {
	before, err := inclusion.Open(v.Old, key)
	if err != nil {
		return err
	}
	now, err := inclusion.Open(v.New, key)
	if err != nil {
		return err
	}
	var proof tlog.TreeProof
	for _, text := range v.Proof {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return err
		}
		proof = append(proof, tlog.Hash(raw))
	}
	return tlog.CheckTree(proof, now.Tree.N, now.Tree.Hash, before.Tree.N, before.Tree.Hash)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	for _, v := range read[[]Webhook](t, "webhooks.json") {
		secret, err := webhook.Secret(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		call := webhook.Call{ID: v.ID, Body: []byte(v.Body)}
		seconds, err := strconv.ParseInt(v.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		age := time.Unix(v.Now, 0).Sub(time.Unix(seconds, 0))
		got := ""
		switch {
		case !slices.ContainsFunc(strings.Fields(v.Signature), func(s string) bool { return call.Signed(v.Timestamp, s, secret) }):
			got = "signature"
		case age.Abs() > Tolerance:
			got = "timestamp"
		}
		if got != v.Refused {
			t.Errorf("%s: refused by %q, want %q", v.Name, got, v.Refused)
		}
	}
}
