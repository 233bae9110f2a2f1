package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// What was agreed is carried out from the command line: a partial delivery with evidence, an
// amendment, a waiver, a dispute that the arbiter decides, and the end.
func TestCommitments(t *testing.T) {
	t.Parallel()
	const arbiter = performatives.Agent("agent://chamber.org/arbiter")
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{
		ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "cups", Policy: map[string]any{"arbiter": arbiter},
	})
	testkit.Must(t, err)
	runs := func(want int, as performatives.Agent, args ...string) string {
		t.Helper()
		said, status := w.reports(append(args, "--url", w.URL, "--as", string(as)))
		if status != want {
			t.Fatalf("%v: status %d: %s", args, status, said)
		}
		return said
	}
	id, folder := string(s.ID()), t.TempDir()
	note, later := filepath.Join(folder, "note.txt"), filepath.Join(folder, "later.yaml")
	testkit.Must(t, os.WriteFile(note, []byte("test"), 0o600))
	due := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	testkit.Must(t, os.WriteFile(later, fmt.Appendf(nil, "obligations:\n  - {id: cups, party: %q, action: deliver cups, quantity: 40, unit: boxes, deadline: %q}\n", beta, due), 0o600))

	runs(done, beta, "say", id, "accept")
	runs(done, alpha, "say", id, "observe", "--set", "subject=on we go")
	_, err = w.Client(beta).Session(s.ID()).Say(w.Ctx, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{
		{ID: "cups", Party: beta, Action: "deliver cups", Quantity: new(float64(100)), Unit: "boxes"},
		{ID: "price", Party: alpha, Action: "pay", Amount: &performatives.Worth{Value: 120.5, Currency: "EUR"}, VerificationMethod: "bank statement"},
	}}})
	testkit.Must(t, err)
	runs(done, alpha, "say", id, "accept", "k1")

	runs(misuse, beta, "commitments", "fulfil", id, "k1/0")
	runs(failed, alpha, "commitments", "accept", id, "k1/cups")
	runs(failed, beta, "commitments", "fulfil", id, "k1/cups", "--quantity", "101")
	runs(done, beta, "commitments", "fulfil", id, "k1/cups", "--quantity", "60", "--evidence", note, "--kind", "delivery-note")
	runs(misuse, alpha, "commitments", "reject", id, "k1/cups")
	if shown, want := runs(done, alpha, "commitments", "show", id), "delivered of k1/cups: 60 boxes, by beta, entry 5"; !strings.Contains(shown, want) || !strings.Contains(shown, "note.txt") {
		t.Errorf("it shows what was delivered without %q:\n%s", want, shown)
	}
	for _, act := range [][]string{{"accept", "--entry", "4"}, {"accept", "--entry", "0"}, {"reject", "--entry", "4", "--reason", "late"}} {
		if said := runs(failed, alpha, append([]string{"commitments", act[0], id, "k1/cups"}, act[1:]...)...); !strings.Contains(said, "is entry 5") {
			t.Errorf("%s of a delivery that does not wait says %s", act[0], said)
		}
	}
	runs(done, alpha, "commitments", "accept", id, "k1/cups", "--entry", "5")
	runs(done, beta, "commitments", "amend", id, "k1", "--terms", later)
	runs(done, alpha, "say", id, "accept", "amendment-7")
	shown := runs(done, alpha, "commitments", "ls")
	for _, want := range []string{`k1/cups +partial +beta +` + due[:10], `40 of 40 boxes`, `k1/price +due +alpha +pay 120\.50 EUR`} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("it lists what is due without %q:\n%s", want, shown)
		}
	}
	runs(done, beta, "commitments", "fulfil", id, "k1/cups")
	runs(done, alpha, "dispute", "open", id, "--entry", "9", "--ground", "mismatch", "--claim", "ten boxes are cracked")
	runs(misuse, beta, "dispute", "reply", id, "dispute-10", "offer")
	runs(done, beta, "dispute", "reply", id, "dispute-10", "deny")
	runs(failed, beta, "dispute", "rule", id, "dispute-10", "dismissed", "--reason", "they are whole")
	runs(done, arbiter, "dispute", "rule", id, "dispute-10", "split", "--reason", "five were", "--award", `{"refund":5}`)
	if shown := runs(done, arbiter, "dispute", "ls", id); !strings.Contains(shown, "split") || !strings.Contains(shown, "ten boxes are cracked") {
		t.Errorf("it lists the dispute as\n%s", shown)
	}
	runs(done, alpha, "commitments", "accept", id, "k1/cups", "--quantity", "35")
	runs(done, alpha, "commitments", "waive", id, "k1/cups", "--reason", "never mind the rest")
	runs(done, beta, "commitments", "waive", id, "k1/price", "--reason", "a gift")
	shown = runs(done, alpha, "commitments", "show", id)
	if !regexp.MustCompile(`k1/cups +waived`).MatchString(shown) || !regexp.MustCompile(`k1/price +waived`).MatchString(shown) {
		t.Errorf("it shows\n%s", shown)
	}
	runs(done, alpha, "say", id, "close")
	if said := runs(done, alpha, "commitments", "ls"); !strings.Contains(said, "nothing is carried out") {
		t.Errorf("after the end it lists\n%s", said)
	}

	info, err := w.Client(alpha).Broker(w.Ctx)
	testkit.Must(t, err)

	// All of it is one file that proves itself, redacted too.
	bundle, public, receipts := filepath.Join(folder, "evidence.json"), filepath.Join(folder, "public.json"), filepath.Join(folder, "receipts.pem")
	runs(done, beta, "evidence", "export", id, "-o", bundle)
	if said := runs(done, alpha, "evidence", "export", id, "--redact", "obligations", "-o", public); !strings.Contains(said, "withheld: entries 3, 7; all else is as it was") {
		t.Errorf("it says of what it has redacted\n%s", said)
	}
	runs(failed, alpha, "evidence", "export", id, "--redact", "nothing")
	logKey := strings.TrimSpace(runs(done, alpha, "log", "key"))
	testkit.Must(t, os.WriteFile(receipts, []byte(runs(done, alpha, "log", "key", "--receipts")), 0o600))
	for file, want := range map[string]string{bundle: "the replay leads to this", public: "Not proven: what is claimed above"} {
		said, status := w.reports([]string{"evidence", "verify", file, "--allow-unsigned", "--broker-key", string(info.Key), "--log-key", logKey, "--receipt-key", receipts})
		if status != done || !strings.Contains(said, want) || !strings.Contains(said, "2 leaves verified") {
			t.Errorf("%s: status %d: %s", file, status, said)
		}
	}
	if said, status := w.reports([]string{"evidence", "verify", bundle, "--allow-unsigned"}); status != done || !strings.Contains(said, "without --log-key") || strings.Contains(said, "leaves") {
		t.Errorf("without the log's key it says, with status %d: %s", status, said)
	}
	data, err := os.ReadFile(bundle)
	testkit.Must(t, err)
	empty := filepath.Join(folder, "empty.json")
	for content, why := range map[string]string{`{"format":"parley-evidence/1","state":"IDLE","transcript":[]}`: "/transcript: is empty", `{}`: "/format", ``: "is no bundle"} {
		testkit.Must(t, os.WriteFile(empty, []byte(content), 0o600))
		if said, status := w.reports([]string{"evidence", "verify", empty}); status != failed || !strings.Contains(said, why) || strings.Contains(said, "IDLE") {
			t.Errorf("of the bundle %q it says, with status %d: %s", content, status, said)
		}
	}
	testkit.Must(t, os.WriteFile(bundle, []byte(strings.Replace(string(data), "five were", "four were", 1)), 0o600))
	if said, status := w.reports([]string{"evidence", "verify", bundle, "--allow-unsigned"}); status != failed || !strings.Contains(said, "fault /transcript/") {
		t.Errorf("of a changed bundle it says, with status %d: %s", status, said)
	}
}
