package agreement_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/transcript"
)

var update = flag.Bool("update", false, "write the vectors in testdata again")

const terms = `{"action":"weather.forecast.detailed","calls_per_month":100000,"price_per_call_eur":"0.0040","nested":{"a":[1,null,"ä"]}}`

// signed is an agreement of binding/1.
func signed(t testing.TB) agreement.Document {
	t.Helper()
	s := sit(t, "binding/1")
	s.say(buyer, s.offer("p1", terms))
	d, err := agreement.Draft(agreement.Offer{})
	if err == nil {
		t.Fatalf("an offer without terms makes an agreement: %v", d)
	}
	view := s.offer("p1", terms)
	hash := hashOf(t, view)
	signature, err := agreement.Sign(signerOf(t, string(seller)), hash)
	if err != nil {
		t.Fatal(err)
	}
	s.say(seller, &performatives.AcceptBody{ReferenceID: "p1", AgreementSignature: signature})
	return s.agreed()
}

func hashOf(t testing.TB, b *performatives.ProposeBody) agreement.Digest {
	t.Helper()
	salt, ok := agreement.ParseSalt(b.AgreementSalt)
	if !ok {
		t.Fatalf("%q is no salt", b.AgreementSalt)
	}
	d, err := agreement.Draft(agreement.Offer{
		Session: sessionID, Proposal: b.ProposalID, Parties: []performatives.Agent{buyer, seller}, Terms: b.Terms, Salt: salt, Binding: b.Binding,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d.Hash
}

// TestVectors holds the documents against those in testdata, which another language
// can check (GATEWAYS.md G4).
func TestVectors(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]agreement.Document{
		"binding.json":  signed(t),
		"redacted.json": signed(t).Redact("price_per_call_eur"),
	} {
		file := filepath.Join("testdata", name)
		got := bytesOf(t, d)
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is another document: %s", name, cmp.Diff(string(want), string(got)))
		}
	}
}

// TestSignedAgreement: both parties have signed the hash, and it stands without the
// broker, redacted too.
func TestSignedAgreement(t *testing.T) {
	t.Parallel()
	d := signed(t)
	parties := []agreement.DID{"did:web:acme.com:procurement:alpha", "did:web:widgets.co:sales:beta"}
	report := agreement.Verify(bytesOf(t, d), agreement.Trust{Broker: signerOf(t, "broker").Key()})
	if len(report.Faults) > 0 || !slices.Equal(report.Signed, parties) || len(report.Redacted) > 0 {
		t.Errorf("%+v", report)
	}
	trust := agreement.Trust{Keys: map[performatives.Agent]performatives.Key{
		buyer: signerOf(t, string(buyer)).Key(), seller: signerOf(t, string(seller)).Key(),
	}}
	report = agreement.Verify(bytesOf(t, d.Redact("action")), trust)
	if len(report.Faults) > 0 || !slices.Equal(report.Signed, parties) || !slices.Equal(report.Redacted, []string{"calls_per_month", "nested", "price_per_call_eur"}) {
		t.Errorf("%+v", report)
	}
	trust.Keys[seller] = signerOf(t, "a thief").Key()
	if report = agreement.Verify(bytesOf(t, d.Redact()), trust); len(report.Faults) != 1 || len(report.Signed) != 1 {
		t.Errorf("a signature of another key passes: %+v", report)
	}
	d.Evidence = nil
	if report = agreement.Verify(bytesOf(t, d), agreement.Trust{}); len(report.Faults) != 2 {
		t.Errorf("signatures of unknown keys pass: %+v", report)
	}
}

// TestAnySpelling: a document that somebody has indented holds; one with a member twice does not.
func TestAnySpelling(t *testing.T) {
	t.Parallel()
	indented := jsontext.Value(bytesOf(t, signed(t)))
	if err := indented.Indent(); err != nil {
		t.Fatal(err)
	}
	trust := agreement.Trust{Broker: signerOf(t, "broker").Key()}
	if report := agreement.Verify(append(indented, '\n'), trust); len(report.Faults) > 0 || len(report.Signed) != 2 {
		t.Error(report.Faults)
	}
	twice := bytes.Replace(indented, []byte(`"agreement_id"`), []byte(`"agreement_id": "agr_0", "agreement_id"`), 1)
	if report := agreement.Verify(twice, trust); len(report.Faults) == 0 {
		t.Error("a document with two ids holds")
	}
	document := signed(t)
	document.Terms["units"] = jsontext.Value("9007199254740992")
	other := bytes.Replace(bytesOf(t, document), []byte("9007199254740992"), []byte("9007199254740993"), 1)
	if report := agreement.Verify(other, trust); len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Why, "double") {
		t.Error("a number that no double holds is read as another one", report.Faults)
	}
}

// TestEveryByte: whatever byte of a document is changed, there is a fault, with keys of the verifier's own
// and without, in turn: those that the document names are judged all the same. Of a long run of digits and
// letters, such as a signature, each eighth is changed.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	keys := map[performatives.Agent]performatives.Key{buyer: signerOf(t, string(buyer)).Key(), seller: signerOf(t, string(seller)).Key()}
	for name, data := range map[string][]byte{
		"whole": bytesOf(t, signed(t)), "redacted": bytesOf(t, signed(t).Redact("action")), "closed": bytesOf(t, evident(t)),
		"committed": bytesOf(t, committed(t)[0]),
	} {
		for turn, trust := range []agreement.Trust{{}, {Broker: signerOf(t, "broker").Key(), Keys: keys}} {
			if report := agreement.Verify(data, trust); len(report.Faults) > 0 {
				t.Fatalf("%s, with %+v: %v", name, trust, report.Faults)
			}
			for i := turn; i < len(data); i += 2 {
				if i%8 > 1 && runOf(data, i) > 16 {
					continue
				}
				changed := bytes.Clone(data)
				changed[i] ^= 1
				if report := agreement.Verify(changed, trust); len(report.Faults) == 0 {
					t.Fatalf("%s, with %+v: byte %d can be changed: …%s…", name, trust, i, changed[max(0, i-20):min(len(changed), i+20)])
				}
			}
		}
	}
}

// runOf is how many digits and letters stand together at an index.
func runOf(data []byte, i int) int {
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	before, after := bytes.LastIndexFunc(data[:i+1], other), bytes.IndexFunc(data[i:], other)
	if after < 0 {
		after = len(data) - i
	}
	return i + after - before - 1
}

// TestRedactionKeepsTheHash: any terms may be taken out.
func TestRedactionKeepsTheHash(t *testing.T) {
	t.Parallel()
	d := signed(t)
	names := []string{"action", "calls_per_month", "price_per_call_eur", "nested", "none such"}
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "keep")
		redacted := d.Redact(keep...)
		hash, err := redacted.Core.Hash()
		if err != nil || hash != d.Hash {
			t.Fatalf("%s, %v", hash, err)
		}
		for name := range d.Terms {
			_, has := redacted.Terms[name]
			if has != slices.Contains(keep, name) {
				t.Fatalf("%s: %t", name, has)
			}
		}
	})
}

// Of terms that the public log has, none is left in a document from which it was taken out.
func TestRedactionLeavesLogOut(t *testing.T) {
	t.Parallel()
	d := signed(t)
	leaf, err := d.Leaf("2026-04-01T00:00:00.000Z", agreement.Publish{Names: []string{"action"}})
	if err != nil {
		t.Fatal(err)
	}
	d.Log = &inclusion.Proof{Leaf: leaf}
	if d.Redact("action").Log == nil {
		t.Error("without a term that the log does not have, it has no position in the log")
	}
	if redacted := d.Redact("nested"); redacted.Log != nil {
		t.Errorf("it still has the leaf %s", redacted.Log.Leaf)
	}
}

// evident is an agreement of another mode, which its entries prove.
func evident(t testing.TB) agreement.Document {
	t.Helper()
	s := sit(t, "asp/1")
	s.say(buyer, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "forecasts", Terms: performatives.Object(terms)})
	s.say(seller, &performatives.AcceptBody{ReferenceID: "p1"})
	s.say(buyer, &performatives.CloseBody{Outcome: performatives.Completed})
	return s.agreed()
}

// committed are the agreements of two commitments that carry one proposal out, and of one
// that stands alone.
func committed(t testing.TB) []agreement.Document {
	t.Helper()
	s := sit(t, "asp/1")
	s.say(buyer, &performatives.ProposeBody{
		ProposalID: "p1", Type: "service-agreement", Subject: "forecasts", Terms: performatives.Object(`{"price":2,"penalties":"none"}`),
		Binding: performatives.Binding{Category: "pricing", EffectiveFrom: "2026-04-01T00:00:00Z"},
	})
	s.say(seller, &performatives.AcceptBody{ReferenceID: "p1"})
	owes := func(id, of string, who performatives.Agent) *performatives.CommitBody {
		return &performatives.CommitBody{CommitmentID: id, ReferenceID: of, Escrow: &performatives.Escrow{Amount: 5, Currency: "EUR"}, Terms: &performatives.CommitmentTerms{
			Obligations: []performatives.Obligation{{Party: who, Action: id}}, Penalties: "5 percent",
		}}
	}
	s.say(buyer, owes("k1", "p1", buyer))
	s.say(seller, owes("k2", "p1", seller))
	s.say(seller, owes("k3", "", seller))
	s.say(seller, &performatives.AcceptBody{ReferenceID: "k1"})
	s.say(buyer, &performatives.AcceptBody{ReferenceID: "k2"})
	s.say(buyer, &performatives.AcceptBody{ReferenceID: "k3"})
	return agreementsOf(t, s.entries)
}

// TestCommitments: an accepted COMMIT makes the agreement, with its obligations and the terms
// of the proposal that it carries out (COMMITMENTS.md C1).
func TestCommitments(t *testing.T) {
	t.Parallel()
	all := committed(t)
	if len(all) != 3 {
		t.Fatalf("%d agreements", len(all))
	}
	for i, want := range []struct {
		name, terms, from, category string
		first                       performatives.Agent
	}{
		{"p1", `{"escrow":{"amount":5,"currency":"EUR"},"obligations":[{"action":"k1","party":"agent://acme.com/procurement/alpha"}],"penalties":"5 percent","price":2}`, "2026-04-01T00:00:00Z", "pricing", buyer},
		{"k2", `{"escrow":{"amount":5,"currency":"EUR"},"obligations":[{"action":"k2","party":"agent://widgets.co/sales/beta"}],"penalties":"5 percent","price":2}`, "2026-04-01T00:00:00Z", "pricing", buyer},
		{"k3", `{"escrow":{"amount":5,"currency":"EUR"},"obligations":[{"action":"k3","party":"agent://widgets.co/sales/beta"}],"penalties":"5 percent"}`, "2026-03-07T14:30:09.000000000Z", "", seller},
	} {
		d := all[i]
		terms, err := json.Marshal(d.Terms, json.Deterministic(true))
		if err != nil || string(terms) != want.terms || d.ID != agreement.IDOf(sessionID, want.name) || d.EffectiveFrom != want.from ||
			d.Category != want.category || d.Parties[0] != agreement.DIDOf(want.first) || len(d.Parties) != 2 {
			t.Errorf("%s is %s with %s of %v from %s", want.name, d.ID, terms, d.Parties, d.EffectiveFrom)
		}
		if report := agreement.Verify(bytesOf(t, d), agreement.Trust{Broker: signerOf(t, "broker").Key()}); len(report.Faults) > 0 {
			t.Errorf("%s: %v", want.name, report.Faults)
		}
		if report := agreement.Verify(bytesOf(t, d.Redact("obligations")), agreement.Trust{}); len(report.Faults) > 0 || len(d.Redact("obligations").Evidence.Commitment) > 0 {
			t.Errorf("%s redacted: %v", want.name, report.Faults)
		}
	}
	bare := all[0]
	bare.Evidence = &agreement.Evidence{Offer: bare.Evidence.Offer, Acceptance: bare.Evidence.Acceptance, Keys: bare.Evidence.Keys}
	if report := agreement.Verify(bytesOf(t, bare), agreement.Trust{}); len(report.Faults) == 0 {
		t.Error("an agreement holds without the commitment that made it")
	}
	open := evident(t)
	if report := agreement.Verify(bytesOf(t, open), agreement.Trust{Broker: signerOf(t, "broker").Key()}); len(report.Faults) > 0 {
		t.Error(report.Faults)
	}
	open.Evidence = &agreement.Evidence{Offer: open.Evidence.Offer, Acceptance: open.Evidence.Acceptance, Close: all[0].Evidence.Acceptance, Keys: open.Evidence.Keys}
	if report := agreement.Verify(bytesOf(t, open), agreement.Trust{}); len(report.Faults) == 0 {
		t.Error("an ACCEPT is taken for the CLOSE")
	}
}

// TestAgreementByEvidence: in the other modes the two signed entries prove it.
func TestAgreementByEvidence(t *testing.T) {
	t.Parallel()
	s := sit(t, "asp/1")
	s.say(buyer, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "forecasts", Terms: performatives.Object(terms)})
	s.say(seller, &performatives.CounterBody{ProposalID: "p2", ReferenceID: "p1", Terms: performatives.Object(`{"price":2}`)})
	s.say(buyer, &performatives.AcceptBody{ReferenceID: "p2", AgreementSignature: "nobody checks it in this mode"})
	s.say(buyer, &performatives.CloseBody{})
	d := s.agreed()
	if d.Parties[0] != agreement.DIDOf(seller) || len(d.Signatures) > 0 || d.EffectiveFrom != s.entries[5].Stamp.Receipt.AcceptedAt {
		t.Errorf("%+v", d)
	}
	if report := agreement.Verify(bytesOf(t, d), agreement.Trust{Broker: signerOf(t, "broker").Key()}); len(report.Faults) > 0 {
		t.Errorf("%v", report.Faults)
	}
	stolen := d
	stolen.Evidence = &agreement.Evidence{Offer: s.entries[2].Bytes, Acceptance: d.Evidence.Acceptance, Close: d.Evidence.Close, Keys: d.Evidence.Keys}
	if report := agreement.Verify(bytesOf(t, stolen), agreement.Trust{}); len(report.Faults) == 0 {
		t.Error("the acceptance of another offer proves the agreement")
	}
	other := agreement.Verify(bytesOf(t, d), agreement.Trust{Broker: signerOf(t, "another broker").Key()})
	if len(other.Faults) != 3 {
		t.Errorf("receipts of another broker: %v", other.Faults)
	}
}

// TestEveryModeOfTheDemo: an agreement of every accepted proposal verifies.
func TestEveryModeOfTheDemo(t *testing.T) {
	t.Parallel()
	made := 0
	for name, want := range map[string]int{"simple-accept": 1, "counter-loop": 1, "convergent": 1, "bilateral": 0, "escalation": 1, "delegation": 1} {
		data, err := os.ReadFile(filepath.Join("..", "..", "test", "formats", "testdata", "2", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var entries []transcript.Entry
		for line := range bytes.Lines(data) {
			e, err := transcript.Read(bytes.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		all := agreementsOf(t, entries)
		if made += len(all); len(all) != want {
			t.Errorf("%s: %d agreements, want %d", name, len(all), want)
		}
		for _, d := range all {
			if report := agreement.Verify(bytesOf(t, d), agreement.Trust{}); len(report.Faults) > 0 {
				t.Errorf("%s: %v", name, report.Faults)
			}
		}
	}
}

func TestDID(t *testing.T) {
	t.Parallel()
	for agent, did := range map[performatives.Agent]agreement.DID{
		"agent://host.org/a/b": "did:web:host.org:a:b", "agent://host.org/a_B.c-d": "did:web:host.org:a_B.c-d", "human://host.org/alice": "did:web:host.org:%40alice",
	} {
		if got := agreement.DIDOf(agent); got != did {
			t.Errorf("%s is %s, want %s", agent, got, did)
		}
		if back, err := did.Agent(); err != nil || back != agent {
			t.Errorf("%s is of %s, %v", did, back, err)
		}
	}
	for _, bad := range []agreement.DID{"", "did:key:z6Mk", "did:web:", "did:web:host.org", "did:web:Host.org:a", "did:web:host.org:a/b"} {
		if a, err := bad.Agent(); err == nil {
			t.Errorf("%q is of %s", bad, a)
		}
	}
}
