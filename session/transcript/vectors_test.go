package transcript

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-asp/parley/performatives"
)

var update = flag.Bool("update", false, "write the test vectors in testdata again")

// A vector is an export and all faults that it has, as "line rule".
type vector struct {
	name   string
	about  string
	lines  [][]byte
	raw    []byte // instead of lines
	expect Expect
	faults []string
}

// with returns the lines with some of them replaced.
func with(lines [][]byte, at int, replacement ...[]byte) [][]byte {
	return splice(lines, at, at+1, replacement...)
}

func splice(lines [][]byte, from, to int, replacement ...[]byte) [][]byte {
	out := append([][]byte{}, lines[:from]...)
	out = append(out, replacement...)
	return append(out, lines[to:]...)
}

// swap replaces text that must be in the line.
func swap(t testing.TB, line []byte, old, replacement string) []byte {
	t.Helper()
	if bytes.Count(line, []byte(old)) == 0 {
		t.Fatalf("no %q in %s", old, line)
	}
	return bytes.Replace(line, []byte(old), []byte(replacement), 1)
}

func vectors(t testing.TB) []vector {
	good := genuine(t)
	n := len(good)
	head := func(entries []Entry) performatives.Hash { return after(entries).PreviousHash }
	whole := deliver(t, session, "broker", negotiation(t))
	other := bytesOf(deliver(t, otherSession, "broker", negotiation(t)))
	bend := func(at int, f func(*step)) [][]byte {
		steps := negotiation(t)
		f(&steps[at])
		return bytesOf(deliver(t, session, "broker", steps))
	}
	// rewrite has other content at the same position of the same chain.
	rewrite := func(at int, f func(*step)) []byte { return bend(at, f)[at] }
	dev := negotiation(t)
	for i := range dev {
		dev[i].keyless, dev[i].unsigned = true, !dev[i].from.IsBroker()
	}
	short := func(s *step) { s.body = &performatives.ObserveBody{Subject: "other content"} }
	receipt := func(e []byte) string {
		_, s, _, err := performatives.ReadDelivered(e)
		if err != nil {
			t.Fatal(err)
		}
		return s.Receipt.Signature
	}
	sender := func(at int) string { return whole[at].Message.Signature }
	otherKey := bytesOf(deliver(t, session, "other broker", negotiation(t)))
	// One CLOSE by another broker, in the chain and with this broker's receipt.
	foreign := bend(n-1, func(s *step) {
		s.from, s.signer = performatives.BrokerAgent(key(t, "other broker").Key()), "other broker"
	})

	return []vector{
		{name: "valid", about: "The whole negotiation.", lines: good,
			expect: Expect{Session: session, Head: head(whole), Length: n}},
		{name: "valid-dev", about: "Under --dev members join without keys and sign nothing.",
			lines: bytesOf(deliver(t, session, "broker", dev))},
		{name: "valid-unsigned-allowed", about: "An unsigned entry where the verifier allows them.",
			lines: bend(2, func(s *step) { s.unsigned = true }), expect: Expect{AllowUnsigned: true}},
		{name: "valid-new-key", about: "A member joins again with another key, which counts from that entry on.",
			lines: bend(7, func(s *step) {
				s.joins, s.joinKey, s.signer = []performatives.Agent{alpha}, "alpha's next key", "alpha's next key"
			})},
		{name: "valid-prefix", about: "The tail is missing and nobody said where it ends: a chain cannot tell.", lines: good[:5]},

		{name: "empty", about: "No entries at all.", faults: []string{"0 length"}},
		{name: "tail-dropped", about: "The last two entries are missing; the length is known.", lines: good[:n-2],
			expect: Expect{Length: n}, faults: []string{"7 length"}},
		{name: "tail-dropped-head", about: "The last two entries are missing; the head is known.", lines: good[:n-2],
			expect: Expect{Head: head(whole)}, faults: []string{"7 head"}},

		{name: "not-json", about: "A line is cut off.", lines: with(good, 3, good[3][:200]), faults: []string{"4 json"}},
		{name: "not-an-envelope", about: "A line is JSON and no entry.", lines: with(good, 3, []byte(`{"a":1}`)), faults: []string{"4 json"}},
		{name: "blank-line", about: "A blank line.", lines: splice(good, 3, 3, []byte{}), faults: []string{"4 json"}},
		{name: "whitespace", about: "A space after a comma: the same JSON, other bytes.",
			lines: with(good, 2, swap(t, good[2], `,"`, `, "`)), faults: []string{"3 canonical"}},
		{name: "escaped", about: "A letter written as an escape.",
			lines: with(good, 2, swap(t, good[2], `100 TB`, `\u0031\u0030\u0030 TB`)), faults: []string{"3 canonical"}},
		{name: "number-spelling", about: "100.5 written as 100.50.",
			lines: with(good, 2, swap(t, good[2], `100.5`, `100.50`)), faults: []string{"3 canonical"}},
		{name: "crlf", about: "Lines end as on Windows.", raw: bytes.ReplaceAll(export(good[:2]), []byte("\n"), []byte("\r\n")),
			faults: []string{"1 canonical", "2 canonical"}},
		{name: "duplicate-key", about: "A key stands twice; the first is the genuine one.",
			lines:  with(good, 2, swap(t, good[2], `"performative":"PROPOSE"`, `"performative":"PROPOSE","performative":"ACCEPT"`)),
			faults: []string{"3 json"}},

		{name: "dropped-first", about: "The first entry is missing.", lines: good[1:], faults: []string{"1 sequence"}},
		{name: "dropped", about: "An entry in the middle is missing.", lines: splice(good, 3, 4), faults: []string{"4 sequence"}},
		{name: "dropped-two", about: "Two entries are missing.", lines: splice(good, 2, 4), faults: []string{"3 sequence"}},
		{name: "swapped", about: "Two neighbours have changed places.", lines: splice(good, 3, 5, good[4], good[3]),
			faults: []string{"4 sequence", "5 sequence", "5 time"}},
		{name: "repeated", about: "An entry stands twice.", lines: splice(good, 4, 4, good[3]),
			faults: []string{"5 sequence", "5 duplicate"}},
		{name: "repeated-later", about: "An entry stands again much later.", lines: splice(good, 7, 7, good[1]),
			faults: []string{"8 sequence", "8 time", "8 duplicate"}},
		{name: "inserted-from-other-session", about: "A genuine entry of another session, put in.", lines: splice(good, 3, 3, other[3]),
			faults: []string{"4 session", "4 previous"}},
		{name: "replaced-from-other-session", about: "A genuine entry of another session in place of this one's.", lines: with(good, 3, other[3]),
			faults: []string{"4 session", "4 previous"}},
		{name: "spliced", about: "This session's beginning, another's end.", lines: append(append([][]byte{}, good[:4]...), other[4:6]...),
			faults: []string{"5 session", "5 previous", "6 session"}},
		{name: "other-session", about: "A whole transcript, but of another session than expected.", lines: other[:1],
			expect: Expect{Session: session}, faults: []string{"1 session"}},

		{name: "content-changed", about: "The price is changed.", lines: with(good, 4, swap(t, good[4], `"price":120`, `"price":12`)),
			faults: []string{"5 hash", "5 signature"}},
		{name: "on-behalf-of-changed", about: "Another principal is named as the one acted for.",
			lines:  with(good, 4, swap(t, good[4], `"onBehalfOf":"agent://widgets.co/sales/beta"`, `"onBehalfOf":"agent://acme.com/procurement/alpha"`)),
			faults: []string{"5 hash"}},
		{name: "on-behalf-of-added", about: "A principal's own act is made somebody else's.",
			lines:  with(good, 2, swap(t, good[2], `"previousHash"`, `"onBehalfOf":"agent://widgets.co/sales/beta","previousHash"`)),
			faults: []string{"3 hash"}},
		{name: "joined-changed", about: "The key of a member is changed, which puts in question only what it says there.",
			lines:  with(good, 1, swap(t, good[1], string(key(t, string(beta)).Key()), string(key(t, "mallory").Key()))),
			faults: []string{"2 hash", "2 signature"}},
		{name: "joined-removed", about: "The record of who joined is taken out.",
			lines:  with(good, 1, cutJoined(t, good[1])),
			faults: []string{"2 hash"}},
		{name: "previous-hash-changed", about: "An entry links to another one than its neighbour.",
			lines:  with(good, 4, swap(t, good[4], string(whole[3].Stamp.Hash), string(whole[2].Stamp.Hash))),
			faults: []string{"5 hash", "5 previous"}},
		{name: "sequence-changed", about: "An entry says another number.",
			lines:  with(good, 4, swap(t, good[4], `"sequenceNumber":4`, `"sequenceNumber":6`)),
			faults: []string{"5 hash", "5 sequence"}},
		{name: "hash-changed", about: "An entry states another hash than it has.",
			lines:  with(good, 4, swap(t, good[4], `"hash":"`+string(whole[4].Stamp.Hash), `"hash":"`+string(whole[3].Stamp.Hash))),
			faults: []string{"5 hash", "5 receipt"}},
		{name: "hash-made-to-fit", about: "The price is changed and the hash computed again; the receipt is of the old one.",
			lines:  with(good, 4, rehash(t, swap(t, good[4], `"price":120`, `"price":12`))),
			faults: []string{"5 receipt", "5 signature"}},

		{name: "signature-by-another", about: "Somebody else's signature of the same bytes.",
			lines:  with(good, 4, swap(t, good[4], sender(4), deliver(t, session, "broker", bent(t, 4, func(s *step) { s.signer = "mallory" }))[4].Message.Signature)),
			faults: []string{"5 hash", "5 signature"}},
		{name: "signature-removed", about: "The sender's signature is taken out.",
			lines:  with(good, 4, swap(t, good[4], `"signature":"`+sender(4)+`"`, `"x":""`)),
			faults: []string{"5 hash", "5 signature"}},
		{name: "signed-again", about: "The right sender has signed other content for the same place, and the broker's fields are the old ones.",
			lines:  with(good, 4, transplant(t, rewrite(4, short), good[4])),
			faults: []string{"5 hash"}},
		{name: "receipt-forged", about: "The receipt is signed by somebody else.",
			lines:  with(good, 4, swap(t, good[4], receipt(good[4]), receipt(otherKey[4]))),
			faults: []string{"5 receipt"}},
		{name: "receipt-of-another-entry", about: "The receipt of the entry before.",
			lines:  with(good, 4, swap(t, good[4], receipt(good[4]), receipt(good[3]))),
			faults: []string{"5 receipt"}},
		{name: "receipt-by-another-broker", about: "All is well, but by another broker.", lines: otherKey[:2],
			faults: []string{"1 receipt", "2 receipt"}},
		{name: "receipt-names-another-broker", about: "The receipt names another broker than signed it.",
			lines:  with(good, 4, swap(t, good[4], `"broker":"`+string(brokerKey(t)), `"broker":"`+string(key(t, "mallory").Key()))),
			faults: []string{"5 receipt"}},
		{name: "receipt-state-changed", about: "The receipt tells of another state.",
			lines: with(good, 4, swap(t, good[4], `"state":"CONVERSING"`, `"state":"EXECUTING"`)), faults: []string{"5 receipt"}},
		{name: "receipt-time-changed", about: "The receipt tells of another time.",
			lines:  with(good, 4, swap(t, good[4], `"acceptedAt":"2026-03-07T14:30:04.`, `"acceptedAt":"2026-03-07T14:30:01.`)),
			faults: []string{"5 receipt", "5 time"}},
		{name: "receipt-extra-field", about: "A field hides in the receipt, which no hash covers.",
			lines: with(good, 4, swap(t, good[4], `"acceptedAt":`, `"a":"b","acceptedAt":`)), faults: []string{"5 receipt"}},
		{name: "receipt-missing-field", about: "A receipt without a state.",
			lines: with(good, 4, swap(t, good[4], `,"state":"CONVERSING"`, ``)), faults: []string{"5 receipt"}},

		// From here on the broker itself, or somebody with its key, is at fault:
		// hashes, chain and receipts are correct.
		{name: "broker-unsigned", about: "The broker took in an unsigned entry of a member with a key.",
			lines: bend(2, func(s *step) { s.unsigned = true }), faults: []string{"3 signature"}},
		{name: "broker-wrong-signer", about: "The broker took in what the sender did not sign.",
			lines: bend(2, func(s *step) { s.signer = "mallory" }), faults: []string{"3 signature"}},
		{name: "broker-old-key", about: "A member joined again with another key and still signs with the old one.",
			lines: bend(5, func(s *step) {
				s.joins, s.joinKey, s.signer = []performatives.Agent{alpha}, "alpha's next key", "alpha's next key"
			}), faults: []string{"8 signature"}},
		{name: "broker-not-pinned", about: "A sender has not joined.",
			lines: bend(6, func(s *step) { s.joins = nil }), faults: []string{"7 pinned"}},
		{name: "broker-joined-too-late", about: "A sender joins only after its first act.",
			lines: bytesOf(deliver(t, session, "broker", late(t))), faults: []string{"4 pinned"}},
		{name: "broker-time-backwards", about: "An entry was accepted before the one before it.",
			lines: bend(4, func(s *step) { s.at = 1 }), faults: []string{"5 time"}},
		{name: "broker-duplicate", about: "A message id stands twice.",
			lines: bend(4, func(s *step) { s.id = 2 }), faults: []string{"5 duplicate"}},
		{name: "broker-fork", about: "An entry that the broker linked to another one than the one before.",
			lines: bend(4, func(s *step) { s.previous = whole[1].Stamp.Hash }), faults: []string{"5 previous"}},
		{name: "broker-first-link", about: "The first entry links to something.",
			lines: bend(0, func(s *step) { s.previous = whole[1].Stamp.Hash }), faults: []string{"1 previous"}},
		{name: "broker-other", about: "A CLOSE by another broker.", lines: foreign, faults: []string{"9 broker"}},
		{name: "broker-close-unsigned", about: "A CLOSE that the broker did not sign.",
			lines: bend(n-1, func(s *step) { s.unsigned = true }), faults: []string{"9 signature"}},
		{name: "broker-close-unsigned-allowed", about: "The broker signs its own entries under --dev as well.",
			lines: bend(n-1, func(s *step) { s.unsigned = true }), expect: Expect{AllowUnsigned: true}, faults: []string{"9 signature"}},
	}
}

func bent(t testing.TB, at int, f func(*step)) []step {
	steps := negotiation(t)
	f(&steps[at])
	return steps
}

// late makes beta join with its second act.
func late(t testing.TB) []step {
	steps := negotiation(t)
	steps[1].joins = nil
	steps[1], steps[3] = steps[3], steps[1]
	steps[1].joins, steps[1].authority = nil, ""
	steps = append(steps[:1], steps[2], steps[2], steps[1], steps[3])
	steps[4].joins, steps[4].authority = []performatives.Agent{beta}, "principal"
	return steps
}

// cutJoined removes the record of who joined from an entry's bytes.
func cutJoined(t testing.TB, line []byte) []byte {
	t.Helper()
	from := bytes.Index(line, []byte(`"joined":`))
	to := bytes.Index(line, []byte(`"linkedBy"`))
	if from < 0 || to < from {
		t.Fatal("no joined")
	}
	return append(append([]byte{}, line[:from]...), line[to:]...)
}

// rehash makes the stated hash fit the bytes.
func rehash(t testing.TB, line []byte) []byte {
	t.Helper()
	_, s, recomputed, err := performatives.ReadDelivered(line)
	if err != nil {
		t.Fatal(err)
	}
	return swap(t, line, `"hash":"`+string(s.Hash), `"hash":"`+string(recomputed))
}

// transplant puts the stated hash and receipt of one entry on another.
func transplant(t testing.TB, line, from []byte) []byte {
	t.Helper()
	_, s, _, err := performatives.ReadDelivered(line)
	if err != nil {
		t.Fatal(err)
	}
	_, f, _, err := performatives.ReadDelivered(from)
	if err != nil {
		t.Fatal(err)
	}
	line = swap(t, line, `"hash":"`+string(s.Hash), `"hash":"`+string(f.Hash))
	return swap(t, line, s.Receipt.Signature, f.Receipt.Signature)
}

// TestVectors runs the published vectors in testdata, which other verifiers can
// run too: an export, the broker's key, and all its faults (PROTOCOL.md §3).
// -update writes them from the table above. The faults come from the table, never
// from Verify.
func TestVectors(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, v := range vectors(t) {
		data := v.raw
		if data == nil {
			data = export(v.lines)
		}
		file := filepath.Join("testdata", v.name+".txtar")
		named[file] = true
		want := txtar.Format(&txtar.Archive{
			Comment: []byte(header(v, brokerKey(t))),
			Files:   []txtar.File{{Name: "transcript.jsonl", Data: data}},
		})
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // published
				t.Fatal(err)
			}
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what the table makes; explain the difference, then run with -update", file)
			}
			if diff := cmp.Diff(orEmpty(v.faults), verify(t, data, v.expect)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !named[f] {
			t.Errorf("%s is in no table", f)
		}
	}
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func header(v vector, broker performatives.Key) string {
	var h strings.Builder
	fmt.Fprintf(&h, "%s\n\nbroker: %s\n", v.about, broker)
	if v.expect.Session != "" {
		fmt.Fprintf(&h, "expect-session: %s\n", v.expect.Session)
	}
	if v.expect.Head != "" {
		fmt.Fprintf(&h, "expect-head: %s\n", v.expect.Head)
	}
	if v.expect.Length != 0 {
		fmt.Fprintf(&h, "expect-length: %d\n", v.expect.Length)
	}
	if v.expect.AllowUnsigned {
		h.WriteString("allow-unsigned\n")
	}
	if len(v.faults) == 0 {
		h.WriteString("valid\n")
	}
	for _, f := range v.faults {
		line, rule, _ := strings.Cut(f, " ")
		fmt.Fprintf(&h, "fault: line %s, %s\n", line, rule)
	}
	return h.String()
}

// TestEveryRuleHasAVector checks that the vectors are complete.
func TestEveryRuleHasAVector(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, v := range vectors(t) {
		for _, f := range v.faults {
			_, rule, _ := strings.Cut(f, " ")
			broken[rule] = true
		}
	}
	for _, r := range []Rule{
		JSON, Canonical, Session, Hash, Receipt, Sequence, Previous,
		Time, Duplicate, Broker, Pinned, Signature, Length, Head,
	} {
		if !broken[string(r)] {
			t.Errorf("no vector breaks %s", r)
		}
	}
}
