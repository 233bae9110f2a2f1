package transcript

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
)

// ErrErased is why an entry cannot be read whose session was erased.
var ErrErased = errors.New("the session was erased: its hashes and receipts are left, and nothing that was said")

// An erasedLine is what is left of an entry (PROTOCOL.md §12). No entry begins like one: its content
// would come before.
type erasedLine struct {
	Erased erasedEntry `json:"erased"`
}

type erasedEntry struct {
	Hash         performatives.Hash    `json:"hash"`
	PreviousHash performatives.Hash    `json:"previousHash"`
	Receipt      performatives.Receipt `json:"receipt"`
	Sequence     uint64                `json:"sequence"`
}

const erasedStart = `{"erased":`

// Erase is the line that is left of an entry.
func Erase(s *performatives.Stamp) ([]byte, error) {
	line, err := json.Marshal(erasedLine{erasedEntry{s.Hash, s.PreviousHash, s.Receipt, s.Sequence}})
	if err != nil {
		return nil, err
	}
	return ijson.Canonicalise(line)
}

// IsErased reports whether a line is what is left of an entry that was erased.
func IsErased(line []byte) bool { return bytes.HasPrefix(line, []byte(erasedStart)) }

var errNotErased = errors.New("the line is not what is left of an erased entry")

// ReadErased reads such a line, which has exactly these members in their canonical form.
func ReadErased(line []byte) (s performatives.Stamp, err error) {
	var l erasedLine
	if len(line) >= maxLine || json.Unmarshal(line, &l) != nil {
		return s, errNotErased
	}
	e := l.Erased
	s = performatives.Stamp{Sequence: e.Sequence, PreviousHash: e.PreviousHash, Hash: e.Hash, Receipt: e.Receipt}
	if again, err := Erase(&s); err != nil || !bytes.Equal(again, line) {
		return performatives.Stamp{}, errNotErased
	}
	return s, nil
}

// addErased checks what is left of an entry: its receipt, position, link and time.
func (v *Verifier) addErased(line []byte) []Fault {
	s, err := ReadErased(line)
	c := check{Verifier: v, Entry: Entry{Stamp: s}}
	if err != nil {
		c.Stamp.Sequence = v.next.Sequence + v.doubtful
		v.doubtful++
		c.fault(JSON, "%s", err)
		return c.faults
	}
	err = c.keys.VerifyReceipt(&s)
	c.receipt(err)
	c.genuine, v.lost = err == nil, true // nobody knows who joined
	c.sameKind(true)
	c.position()
	c.times()
	return c.faults
}

// sameKind checks that all entries of a transcript are erased, or none is. Otherwise whoever
// exports one could leave out what an entry says, and call it erased.
func (c *check) sameKind(erased bool) {
	if c.kinds == nil {
		c.kinds = &erased
	}
	if *c.kinds != erased {
		c.fault(Erased, "a transcript is erased whole or not at all; this line is %s", map[bool]string{true: "erased", false: "not"}[erased])
	}
}
