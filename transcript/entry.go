package transcript

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An Entry is one accepted message as it stands in a transcript.
type Entry struct {
	Message *performatives.Message // as its sender made it
	Stamp   performatives.Stamp    // what the broker added
	Bytes   []byte                 // canonical, as delivered

	// Recomputed is the hash that the bytes really have; Stamp.Hash is the one
	// that they state. Read does not compare them: Verify does.
	Recomputed performatives.Hash
}

// Read reads one delivered envelope and insists on its canonical bytes: any
// other spelling of the same JSON is a fault, because what is signed and hashed
// is the spelling. The error is a Fault without a line.
func Read(data []byte) (Entry, error) {
	e, fault := read(data)
	if fault != nil {
		return Entry{}, *fault
	}
	return e, nil
}

// read also returns the entry where the spelling is its only fault.
func read(data []byte) (Entry, *Fault) {
	m, stamp, recomputed, err := performatives.ReadDelivered(data)
	if err != nil {
		return Entry{}, &Fault{Rule: unreadable(err), Why: err.Error()}
	}
	e := Entry{Message: m, Stamp: stamp, Bytes: bytes.Clone(data), Recomputed: recomputed}
	canonical, err := performatives.Canonicalise(jsontext.Value(data))
	if err != nil || !performatives.Equal(canonical, data) {
		return e, &Fault{
			Sequence: stamp.Sequence, Rule: Canonical,
			Why: "the line is not the canonical form (RFC 8785) of its JSON",
		}
	}
	return e, nil
}

// unreadable is the rule that an entry broke which could not be read: a receipt
// is outside the hash, so one with more or less in it than it should is named.
func unreadable(err error) Rule {
	var malformed *performatives.Malformed
	if errors.As(err, &malformed) && strings.HasPrefix(malformed.Path, "/integrity/receipt") {
		return Receipt
	}
	return JSON
}

// Next is the place of the entry after this one.
func (e Entry) Next() performatives.Link {
	return performatives.Link{Sequence: e.Stamp.Sequence + 1, PreviousHash: e.Stamp.Hash}
}

// Next is the place of the entry that is to follow these, which are a
// transcript from its beginning or any part of one.
func Next(entries []Entry) performatives.Link {
	if len(entries) == 0 {
		return performatives.Link{PreviousHash: performatives.NoHash}
	}
	return entries[len(entries)-1].Next()
}
