// Package transcript verifies that the record of a session is complete and genuine.
//
// A transcript is the session's accepted messages in order, as they were
// delivered. Its export is JSON Lines (PROTOCOL.md §3). [Verify] needs only the
// broker's public key:
//
//	faults, err := transcript.Verify(file, brokerKey, transcript.Expect{})
//	if err != nil {
//		return err // the file could not be read to its end
//	}
//	for _, fault := range faults {
//		fmt.Println(fault) // line 3, entry 2: hash: the entry was changed …
//	}
//
// Invariants:
//
//   - Without faults, the broker accepted exactly these entries in this order from
//     the session's beginning, and each was signed with the key that was pinned
//     for its sender.
//   - Every changed byte and every entry that was dropped, inserted, moved or
//     signed again is a fault. Only a missing end leaves no trace in a chain:
//     [Expect] says where it should end.
//   - The first fault is that of the first wrong entry. Consequences of a fault are
//     not reported, so one changed entry means faults of one line.
//   - Of a session that was erased, each line is the hash and receipt of an entry:
//     the broker accepted an entry with this hash at this time. The lines do not say
//     in which session, and a line that was left out together with its link leaves no
//     trace, unless [Expect] says the length.
//   - Verify trusts the broker about when an entry was accepted, which state it led
//     to, and who joined with which key. It does not check the rules of the
//     conversation; a replay through package session does.
//
// The package is pure: no network, no clock, no log.
package transcript

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Expect is what the caller knows of a transcript from elsewhere. Zero fields are
// not checked.
type Expect struct {
	Session performatives.SessionID
	Head    performatives.Hash // of the last entry, for example from the acceptance of a CLOSE
	Length  int                // number of entries

	// BrokerKeys are all keys that the broker's receipts may have, where it has rotated its key
	// ([performatives.KeyHistory.Trust]). None are the one key that Verify was given.
	BrokerKeys performatives.TrustedKeys

	// AllowUnsigned accepts unsigned entries of members that have a key, as a
	// broker under --dev does. Signatures must be valid all the same.
	AllowUnsigned bool
}

// Verify checks an exported transcript and returns its faults in the order of the
// lines, none if it is complete and genuine. The error is the reader's.
func Verify(r io.Reader, broker performatives.Key, expect Expect) ([]Fault, error) {
	v := NewVerifier(broker, expect)
	in := newLines(r)
	var faults []Fault
	for in.next() {
		faults = append(faults, v.Add(in.line)...)
	}
	if in.err != nil {
		return nil, in.err
	}
	return append(faults, v.End()...), nil
}

// A Verifier checks a transcript entry by entry.
type Verifier struct {
	broker performatives.Key
	keys   performatives.TrustedKeys
	expect Expect

	lines   int
	session performatives.SessionID
	seen    map[performatives.MessageID]uint64
	pins    map[performatives.Agent]pin

	// next is the position after the last genuine entry. doubtful counts the lines
	// since then, which are not genuine and may or may not have a position.
	next     performatives.Link
	doubtful uint64
	accepted time.Time // of the last genuine entry
	lost     bool      // an entry is missing or not genuine, so its pins are unknown
	kinds    *bool     // whether the first line is erased, once there is one
}

// A pin is the key with which a member's entries are verified.
type pin struct {
	key      performatives.Key // "" under --dev
	doubtful bool              // the entry that pinned it is not genuine
}

// NewVerifier starts at the beginning of a transcript of this broker.
func NewVerifier(broker performatives.Key, expect Expect) *Verifier {
	return &Verifier{
		broker: broker, keys: expect.BrokerKeys.Or(broker), expect: expect, session: expect.Session,
		seen: map[performatives.MessageID]uint64{},
		pins: map[performatives.Agent]pin{},
		next: performatives.Link{PreviousHash: performatives.NoHash},
	}
}

// Add checks the next entry, without its line feed, and returns its faults in the
// order of Rules.
func (v *Verifier) Add(line []byte) []Fault {
	v.lines++
	if IsErased(line) {
		return v.addErased(line)
	}
	e, fault, _ := read(line)
	if e.Message == nil {
		fault.Line, fault.Sequence = v.lines, v.next.Sequence+v.doubtful
		v.doubtful++
		v.lost = true
		return []Fault{*fault}
	}
	c := check{Verifier: v, Entry: e}
	if fault != nil {
		c.fault(fault.Rule, "%s", fault.Why)
	}
	c.genuine = c.isGenuine()
	c.sameKind(false)
	c.position()
	c.times()
	c.once()
	c.sender()
	return c.faults
}

// End returns the faults of the transcript as a whole. Call it after the last
// entry.
func (v *Verifier) End() []Fault {
	c := check{Verifier: v}
	c.Stamp.Sequence = v.next.Sequence
	switch {
	case v.lines == 0:
		c.fault(Length, "there is no entry")
	case v.expect.Length > 0 && v.lines != v.expect.Length:
		c.fault(Length, "there are %d entries; %d are expected", v.lines, v.expect.Length)
	case v.expect.Head != "" && v.next.PreviousHash != v.expect.Head && v.doubtful == 0:
		// If the last lines are not genuine, they are faults already.
		c.fault(Head, "the transcript ends with %s; %s is expected", v.next.PreviousHash, v.expect.Head)
	}
	return c.faults
}

// A check is the verification of one entry.
type check struct {
	*Verifier
	Entry
	genuine bool // the broker accepted exactly this entry
	inPlace bool // and it follows the genuine entries so far
	faults  []Fault
}

func (c *check) fault(rule Rule, format string, args ...any) {
	c.faults = append(c.faults, Fault{
		Line: c.lines, Sequence: c.Stamp.Sequence, Rule: rule, Why: fmt.Sprintf(format, args...),
	})
}

// isGenuine reports whether the broker accepted exactly this entry in this
// session. Then its sequence number is true.
func (c *check) isGenuine() bool {
	unchanged := c.Recomputed == c.Stamp.Hash
	err := c.keys.VerifyReceipt(&c.Stamp)
	if c.session == "" && unchanged && err == nil {
		c.session = c.Message.Session
	}
	other := c.isOthers()
	if other {
		c.fault(Session, "the entry is of session %s; the transcript, of %s", c.Message.Session, c.session)
	}
	if !unchanged {
		c.fault(Hash, "the entry was changed: its hash is %s, not %s as it says", c.Recomputed, c.Stamp.Hash)
	}
	c.receipt(err)
	return unchanged && err == nil && !other
}

// receipt says what is wrong with the entry's receipt.
func (c *check) receipt(err error) {
	var untimely *performatives.UntimelyError
	switch {
	case !c.keys.Has(c.Stamp.Receipt.Broker):
		c.fault(Receipt, "the receipt is by %q, not by the broker %s", c.Stamp.Receipt.Broker, c.broker)
	case errors.As(err, &untimely):
		c.fault(Receipt, "%s", untimely)
	case err != nil:
		c.fault(Receipt, "the broker did not sign that it accepted this hash at this time into this state")
	}
}

// isOthers reports whether the entry is of another session. Unless Expect names
// the session, it is that of the first genuine entry.
func (c *check) isOthers() bool { return c.session != "" && c.Message.Session != c.session }
