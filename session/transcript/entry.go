package transcript

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
)

// An Entry is one accepted message in a transcript.
type Entry struct {
	Message *performatives.Message // as the sender made it
	Stamp   performatives.Stamp    // added by the broker
	Bytes   []byte                 // canonical, as delivered

	// Recomputed is the hash of the bytes; Stamp.Hash is the one that they state.
	// Verify compares the two, Read does not.
	Recomputed performatives.Hash
}

// Read reads one delivered envelope. It accepts the canonical bytes only, because
// those were signed and hashed. The error is a Fault without a line. It wraps a
// *performatives.NewerFormatError, or [ErrErased].
func Read(data []byte) (Entry, error) {
	e, fault, cause := read(data)
	if fault == nil {
		return e, nil
	}
	return Entry{}, unreadEntry(*fault, cause)
}

func unreadEntry(f Fault, cause error) error {
	if cause == nil {
		return f
	}
	return unread{f, cause}
}

// An unread entry has a fault, and what it comes from.
type unread struct {
	Fault
	cause error
}

func (u unread) Unwrap() []error { return []error{u.Fault, u.cause} }

// ReadOpened reads an entry as Read does, and opens what its reader may read of what is sealed in it.
func ReadOpened(data []byte, parts map[performatives.MessageID]performatives.SealedParts) (Entry, error) {
	e, err := Read(data)
	if err != nil || len(parts[e.Message.ID]) == 0 {
		return e, err
	}
	return e, e.Message.Open(parts[e.Message.ID])
}

// read also returns the entry if it is merely not canonical, else what its fault comes from.
func read(data []byte) (Entry, *Fault, error) {
	if IsErased(data) {
		return Entry{}, &Fault{Rule: Erased, Why: ErrErased.Error()}, ErrErased
	}
	m, stamp, recomputed, err := performatives.ReadDelivered(data)
	if err != nil {
		why := strings.Replace(err.Error(), ", at line 1, column ", ", at column ", 1) // the fault names the line of the export
		return Entry{}, &Fault{Rule: unreadable(err), Why: why}, err
	}
	e := Entry{Message: m, Stamp: stamp, Bytes: bytes.Clone(data), Recomputed: recomputed}
	canonical, err := ijson.Canonicalise(jsontext.Value(data))
	if err != nil || !performatives.Equal(canonical, data) {
		return e, &Fault{
			Sequence: stamp.Sequence, Rule: Canonical,
			Why: "the line is not the canonical form (RFC 8785) of its JSON",
		}, nil
	}
	return e, nil, nil
}

// unreadable is the rule broken by an entry that cannot be read. A malformed
// receipt has its own rule, since the hash does not cover it.
func unreadable(err error) Rule {
	var malformed *performatives.Malformed
	if errors.As(err, &malformed) && strings.HasPrefix(malformed.Path, "/integrity/receipt") {
		return Receipt
	}
	return JSON
}

// Next is the position of the entry after this one.
func (e Entry) Next() performatives.Link {
	return performatives.Link{Sequence: e.Stamp.Sequence + 1, PreviousHash: e.Stamp.Hash}
}
