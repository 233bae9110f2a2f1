package transcript

import "fmt"

// A Rule is one check of the verifier.
type Rule string

// The rules, in the order in which an entry is checked.
const (
	JSON      Rule = "json"      // the line is one delivered envelope in I-JSON
	Canonical Rule = "canonical" // the line is in RFC 8785 form
	Session   Rule = "session"   // all entries are of one session
	Hash      Rule = "hash"      // integrity.hash is the hash of the entry
	Receipt   Rule = "receipt"   // the broker signed that it accepted the entry
	Erased    Rule = "erased"    // all entries were erased, or none
	Sequence  Rule = "sequence"  // sequenceNumber is 0, 1, 2 …
	Previous  Rule = "previous"  // previousHash is the hash of the entry before; 64 zeros in the first
	Time      Rule = "time"      // acceptedAt never decreases
	Duplicate Rule = "duplicate" // a messageId is used once
	Broker    Rule = "broker"    // an entry from a broker is from this one
	Pinned    Rule = "pinned"    // the sender joined with this entry or an earlier one
	Signature Rule = "signature" // the sender signed it with the key that was pinned last
	Length    Rule = "length"    // there are as many entries as expected, and at least one
	Head      Rule = "head"      // the last entry is the expected one
)

// A Fault is one error in a transcript.
type Fault struct {
	Line     int    `json:"line"`     // of the export, from 1; 0 for a single entry
	Sequence uint64 `json:"sequence"` // as the entry states it, or its position if it cannot be read
	Rule     Rule   `json:"rule"`
	Why      string `json:"why"` // for people
}

func (f Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Rule, f.Why)
	}
	return fmt.Sprintf("line %d, entry %d: %s: %s", f.Line, f.Sequence, f.Rule, f.Why)
}
