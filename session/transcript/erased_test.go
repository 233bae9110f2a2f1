package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func erased(t testing.TB, entries []Entry) [][]byte {
	t.Helper()
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		if lines[i], err = Erase(&e.Stamp); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// Nothing that was said is left of an erased transcript, and nobody reads it as one that was not.
func TestErasedSaysNothing(t *testing.T) {
	t.Parallel()
	entries := deliver(t, session, "broker", negotiation(t))
	data := export(erased(t, entries))
	for _, said := range []string{string(alpha), string(alice), string(session), "PROPOSE", "price", "Storage", entries[2].Message.Signature} {
		if bytes.Contains(data, []byte(said)) {
			t.Errorf("%q is left", said)
		}
	}
	if _, err := ReadAll(bytes.NewReader(data)); !errors.Is(err, ErrErased) {
		t.Errorf("read: %v", err)
	}
	if _, err := Read(erased(t, entries)[0]); !errors.Is(err, ErrErased) {
		t.Errorf("one was read: %v", err)
	}
}

// Each change of a byte of an erased transcript is a fault of its line first.
func TestEveryByteOfErased(t *testing.T) {
	t.Parallel()
	lines := erased(t, deliver(t, session, "broker", negotiation(t)))
	stride := 1
	if testing.Short() {
		stride = 23
	}
	before := NewVerifier(brokerKey(t), Expect{})
	for i, line := range lines {
		after := [][]byte{nil}
		if i+1 < len(lines) {
			after = lines[i+1 : i+2]
		}
		for at := 0; at < len(line); at += stride {
			changed := append(bytes.Clone(line), '\n')
			changed[at] ^= 1
			faults := addAll(before.clone(), append(changed, join2(after)...))
			if len(faults) == 0 || faults[0].Line != i+1 {
				t.Fatalf("line %d, byte %d: %v", i+1, at, faults)
			}
		}
		if faults := before.Add(line); len(faults) > 0 {
			t.Fatal(faults)
		}
	}
}

// Each line that is left out, repeated or swapped, and each that is not erased, is a fault.
func TestErasedLines(t *testing.T) {
	t.Parallel()
	good := genuine(t)
	lines := erased(t, deliver(t, session, "broker", negotiation(t)))
	n := len(lines)
	if got := verify(t, export(lines), Expect{Head: after(deliver(t, session, "broker", negotiation(t))).PreviousHash, Length: n}); len(got) > 0 {
		t.Fatal(got)
	}
	expect := func(what string, lines [][]byte, e Expect, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, verify(t, export(lines), e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for i := range n - 1 {
		expect("dropped", splice(lines, i, i+1), Expect{}, fmt.Sprintf("%d sequence", i+1))
		expect("repeated", splice(lines, i+1, i+1, lines[i]), Expect{}, fmt.Sprintf("%d sequence", i+2))
	}
	expect("without the end", lines[:n-1], Expect{Length: n}, fmt.Sprintf("%d length", n-1))
	for i := range n {
		if i > 0 {
			expect("one erased", with(good, i, lines[i]), Expect{}, fmt.Sprintf("%d erased", i+1))
			expect("one not erased", with(lines, i, good[i]), Expect{}, fmt.Sprintf("%d erased", i+1))
		}
		expect("another member", with(lines, i, append(bytes.TrimSuffix(bytes.Clone(lines[i]), []byte("}")), `,"note":1}`...)), Expect{}, fmt.Sprintf("%d json", i+1))
	}
	other := erased(t, deliver(t, session, "other broker", negotiation(t)))
	expect("of another broker", with(lines, 2, other[2]), Expect{}, "3 receipt")
}
