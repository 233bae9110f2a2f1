package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// clone copies a verifier, so that tests can continue from the same state.
func (v *Verifier) clone() *Verifier {
	c := *v
	c.seen, c.pins = maps.Clone(v.seen), maps.Clone(v.pins)
	return &c
}

// TestEveryByte changes each byte of an export, one at a time. Every change is a
// fault of its own line first and, unless it adds or removes a line feed, of no
// other line.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	stride := 1
	if testing.Short() {
		stride = 23
	}
	before := NewVerifier(brokerKey(t), Expect{})
	offset := 0
	for i, line := range lines {
		after := [][]byte{nil}
		if i+1 < len(lines) {
			after = lines[i+1 : i+2]
		}
		for at := 0; at <= len(line); at += stride {
			// The byte after the line is its line feed.
			text := append(append([]byte{}, line...), '\n')
			for n, b := range []byte{text[at] ^ 1, text[at] ^ 0x20, '\n'} { // of the latter two every fourth
				if b == text[at] || n > 0 && (testing.Short() || at%4 != n) {
					continue
				}
				changed := append([]byte{}, text...)
				changed[at] = b
				v := before.clone()
				faults := addAll(v, append(changed, join2(after)...))
				where := fmt.Sprintf("byte %d (line %d, %d): %q for %q", offset+at, i+1, at, b, text[at])
				if len(faults) == 0 {
					t.Fatalf("%s: not found", where)
				}
				if faults[0].Line != i+1 {
					t.Fatalf("%s: first blamed on line %d: %v", where, faults[0].Line, faults[0])
				}
				if last := faults[len(faults)-1]; at < len(line) && b != '\n' && last.Line != i+1 {
					t.Fatalf("%s: blamed on line %d as well: %v", where, last.Line, last)
				}
			}
		}
		offset += len(line) + 1
		if faults := before.Add(line); len(faults) > 0 {
			t.Fatal(faults)
		}
	}
}

func join2(lines [][]byte) []byte {
	if lines[0] == nil {
		return nil
	}
	return export(lines)
}

func addAll(v *Verifier, data []byte) []Fault {
	var faults []Fault
	in := newLines(bytes.NewReader(data))
	for in.next() {
		faults = append(faults, v.Add(in.line)...)
	}
	return append(faults, v.End()...)
}

// TestEachDropped drops each entry. All but the last leave a fault, in the line
// that takes its position and in no other.
func TestEachDropped(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	for i := range lines {
		got := verify(t, export(splice(lines, i, i+1)), Expect{})
		want := []string{fmt.Sprintf("%d sequence", i+1)}
		if i == len(lines)-1 {
			want = []string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without entry %d (-want +got):\n%s", i, diff)
		}
		if got := verify(t, export(splice(lines, i, i+1)), Expect{Length: len(lines)}); len(got) == 0 {
			t.Errorf("without entry %d, the length known: not found", i)
		}
	}
}

// TestEachSwapped swaps each entry with its neighbour.
func TestEachSwapped(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	for i := range len(lines) - 1 {
		got := verify(t, export(splice(lines, i, i+2, lines[i+1], lines[i])), Expect{})
		want := []string{fmt.Sprintf("%d sequence", i+1), fmt.Sprintf("%d sequence", i+2), fmt.Sprintf("%d time", i+2)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("entries %d and %d swapped (-want +got):\n%s", i, i+1, diff)
		}
	}
}

// TestEachInserted inserts each entry of this and of another session at each
// position. Only the inserted line has faults.
func TestEachInserted(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	other := bytesOf(deliver(t, otherSession, "broker", negotiation(t)))
	for at := 1; at <= len(lines); at++ {
		for i := range lines {
			for name, entry := range map[string][]byte{"own": lines[i], "other": other[i]} {
				if name == "own" && i >= at {
					continue // it comes too early, which reads as the others coming too late
				}
				faults, err := Verify(bytes.NewReader(export(splice(lines, at, at, entry))), brokerKey(t), Expect{})
				if err != nil || len(faults) == 0 {
					t.Fatalf("%s entry %d at line %d: not found (%v)", name, i, at+1, err)
				}
				for _, f := range faults {
					if f.Line != at+1 {
						t.Errorf("%s entry %d at line %d: blamed on line %d: %v", name, i, at+1, f.Line, f)
					}
				}
			}
		}
	}
}

// TestEachReplaced replaces each entry by one of another session.
func TestEachReplaced(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	other := bytesOf(deliver(t, otherSession, "broker", negotiation(t)))
	for i := range lines {
		faults, err := Verify(bytes.NewReader(export(with(lines, i, other[i]))), brokerKey(t), Expect{Session: session})
		if err != nil || len(faults) == 0 {
			t.Fatalf("entry %d: not found (%v)", i, err)
		}
		if faults[0].Line != i+1 || faults[0].Rule != Session || faults[len(faults)-1].Line != i+1 {
			t.Errorf("entry %d: %v", i, faults)
		}
	}
}

// TestFaultsRead checks the messages of some faults.
func TestFaultsRead(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	for _, tt := range []struct {
		lines [][]byte
		want  string
	}{
		{splice(lines, 2, 4), "line 3, entry 4: sequence: entries 2 to 3 are missing before it"},
		{splice(lines, 2, 3), "line 3, entry 3: sequence: entry 2 is missing before it"},
		{with(lines, 2, []byte("{")), "line 3, entry 2: json: not I-JSON: the JSON ends early, at column 2"},
		{bytesOf(deliver(t, session, "broker", bent(t, 2, func(s *step) { s.unsigned = true }))),
			"line 3, entry 2: signature: agent://acme.com/procurement/alpha did not sign it"},
	} {
		faults, err := Verify(bytes.NewReader(export(tt.lines)), brokerKey(t), Expect{})
		if err != nil || len(faults) == 0 || faults[0].Error() != tt.want {
			t.Errorf("got %v, %v; want %s", faults, err, tt.want)
		}
	}
}

// TestRoundTrip checks that ReadAll reads what Write writes, byte for byte. The
// last line feed may be missing.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	data := export(genuine(t))
	for _, in := range [][]byte{data, bytes.TrimSuffix(data, []byte("\n"))} {
		entries, err := ReadAll(iotest.OneByteReader(bytes.NewReader(in)))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Write(&out, entries); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Error("an export changed on its way through ReadAll and Write")
		}
		if got := verify(t, in, Expect{}); len(got) > 0 {
			t.Error(got)
		}
	}
	if entries, err := ReadAll(strings.NewReader("")); err != nil || len(entries) != 0 {
		t.Errorf("nothing: %v, %v", entries, err)
	}
}

// TestReadAllNamesTheLine checks that errors name the line.
func TestReadAllNamesTheLine(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	long := bytes.Repeat([]byte(" "), maxLine+10)
	for name, tt := range map[string]struct {
		in   io.Reader
		want Fault
	}{
		"not JSON":      {bytes.NewReader(export(with(lines, 2, []byte("x")))), Fault{Line: 3, Rule: JSON}},
		"not canonical": {bytes.NewReader(export(with(lines, 2, append(slices.Clone(lines[2]), ' ')))), Fault{Line: 3, Rule: Canonical, Sequence: 2}},
		"too long":      {bytes.NewReader(export(splice(lines, 2, 2, long))), Fault{Line: 3, Rule: JSON}},
	} {
		_, err := ReadAll(tt.in)
		var fault Fault
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fault.Why = ""
		if diff := cmp.Diff(tt.want, fault); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	broken := io.MultiReader(bytes.NewReader(export(lines[:2])), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := ReadAll(broken); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("a reader's error: %v", err)
	}
	broken = io.MultiReader(bytes.NewReader(export(lines[:2])), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := Verify(broken, brokerKey(t), Expect{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader's error: %v", err)
	}
}

// TestLongLineIsOneFault checks that a line that is too long is one fault, and
// does not affect the lines after it.
func TestLongLineIsOneFault(t *testing.T) {
	t.Parallel()
	lines := genuine(t)
	long := bytes.Repeat([]byte("x"), 2*maxLine)
	if diff := cmp.Diff([]string{"3 json"}, verify(t, export(with(lines, 2, long)), Expect{})); diff != "" {
		t.Error(diff)
	}
}

// FuzzVerify checks that Verify never panics, and that an export without faults is
// the genuine one or a prefix of it.
func FuzzVerify(f *testing.F) {
	lines := genuine(f)
	whole := export(lines[:2]) // short, so that the fuzzer is fast
	broker := brokerKey(f)
	f.Add(whole)
	f.Add(export(lines[:1]))
	f.Add(export([][]byte{lines[1], lines[0]}))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		faults, err := Verify(bytes.NewReader(data), broker, Expect{})
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) == 0 && !bytes.HasPrefix(whole, data) {
			t.Fatalf("no fault in what the broker never kept: %q", data)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	data := export(genuine(b))
	broker := brokerKey(b)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if faults, err := Verify(bytes.NewReader(data), broker, Expect{}); err != nil || len(faults) > 0 {
			b.Fatal(faults, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bytes.Count(data, []byte("\n"))), "ns/entry")
}

func BenchmarkRead(b *testing.B) {
	line := genuine(b)[4]
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(line); err != nil {
			b.Fatal(err)
		}
	}
}
