package store

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
)

// A position tells shard and sequence, and a reading that begins after one begins with the next message.
func TestPositions(t *testing.T) {
	t.Parallel()
	for _, of := range []uint64{1, 2, 3, 16} {
		for number := range of {
			p := shard{"S", number, of}
			if p.position(0) != 0 || p.from(0) != 0 {
				t.Errorf("%v: none is %d and %d", p, p.position(0), p.from(0))
			}
			for sequence := range uint64(5) {
				sequence++
				at := p.position(sequence)
				if at%of != number || p.from(at) != sequence || p.from(at+1) != sequence+1 || p.from(at-1) > sequence {
					t.Errorf("%v: sequence %d is at %d, from which is %d", p, sequence, at, p.from(at))
				}
			}
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Marks{"7": {7}, "[4,0,8]": {4, 0, 8}} {
		var read Marks
		if err := json.Unmarshal([]byte(text), &read); err != nil || !slices.Equal(read, want) {
			t.Errorf("%s is read as %v: %v", text, read, err)
		}
		if written, err := json.Marshal(want); err != nil || string(written) != text {
			t.Errorf("%v is written as %s: %v", want, written, err)
		}
	}
	m := Marks{30, 31, 32}
	m.Before(31)
	m.After(35)
	m.Lower(Marks{33, 40, 34})
	m.Raise(Marks{6})
	if want := (Marks{30, 30, 34}); !slices.Equal(m, want) {
		t.Errorf("%v, want %v", m, want)
	}
	if got := m.Since(Marks{24, 28, 35}); got != 2 {
		t.Errorf("%d messages since", got)
	}
	if (Marks{1}).At(3) != 0 {
		t.Error("a mark that is not there")
	}
}
