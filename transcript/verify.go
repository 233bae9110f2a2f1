// Package transcript tells whether the record of a session is whole and genuine.
//
// A transcript is the session's accepted messages in order, each as it was
// delivered; exported, it is JSON Lines (PROTOCOL.md §3). [Verify] needs the
// broker's public key and nothing else:
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
//   - No fault means: the broker accepted exactly these entries in exactly this
//     order from the session's beginning, and each was signed by the key that was
//     pinned for its sender when it joined.
//   - Any byte that is changed, any entry that is dropped, inserted, moved or
//     signed again is a fault. Only entries missing at the end leave no trace in a
//     chain: say in [Expect] where it should end.
//   - The first fault names the first entry that is not in order. What only
//     follows from a fault named already is not named again, so that one changed
//     entry is one line of the export.
//   - It trusts the broker's word about when an entry was accepted, which state it
//     led to and who joined with which key. It does not judge the rules of the
//     conversation: that is a replay through package session.
//
// The package is pure: no network, no clock, no log.
package transcript

import (
	"fmt"
	"io"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Expect is what is known of a transcript from elsewhere; the zero value is
// nothing.
type Expect struct {
	Session performatives.SessionID // whose transcript it is
	Head    performatives.Hash      // the hash of its last entry, such as from the acceptance of a CLOSE
	Length  int                     // how many entries it has; 0 is not known

	// AllowUnsigned hears unsigned entries of members that have a key, as a
	// broker under --dev does. A signature that is there must fit all the same.
	AllowUnsigned bool
}

// Verify checks an exported transcript and returns its faults in the order of
// its lines; none means that it is whole and genuine. The error is the reader's.
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

// A Verifier checks a transcript entry by entry, as they come.
type Verifier struct {
	broker performatives.Key
	expect Expect

	lines   int
	session performatives.SessionID
	seen    map[performatives.MessageID]uint64
	pins    map[performatives.Agent]pin

	// next is the place after the last genuine entry; doubtful counts the lines
	// since then that are not genuine, each of which may have a place or none.
	next     performatives.Link
	doubtful uint64
	accepted time.Time // of the last genuine entry
	lost     bool      // an entry is missing or not genuine: what it pinned is not known
}

// A pin is the key to verify a member's entries by.
type pin struct {
	key      performatives.Key // "" under --dev
	doubtful bool              // the entry that pinned it is not genuine
}

// NewVerifier starts at the beginning of a transcript that this broker kept.
func NewVerifier(broker performatives.Key, expect Expect) *Verifier {
	return &Verifier{
		broker: broker, expect: expect, session: expect.Session,
		seen: map[performatives.MessageID]uint64{},
		pins: map[performatives.Agent]pin{},
		next: performatives.Link{PreviousHash: performatives.NoHash},
	}
}

// Add takes the next entry, as delivered and without a line feed, and returns
// its faults in the order of Rules.
func (v *Verifier) Add(line []byte) []Fault {
	v.lines++
	e, fault := read(line)
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
	c.place()
	c.times()
	c.once()
	c.sender()
	return c.faults
}

// End is for after the last entry: it returns the faults of the whole.
func (v *Verifier) End() []Fault {
	c := check{Verifier: v}
	c.Stamp.Sequence = v.next.Sequence
	switch {
	case v.lines == 0:
		c.fault(Length, "there is no entry")
	case v.expect.Length > 0 && v.lines != v.expect.Length:
		c.fault(Length, "there are %d entries; %d are expected", v.lines, v.expect.Length)
	case v.expect.Head != "" && v.next.PreviousHash != v.expect.Head && v.doubtful == 0:
		// Where the last lines are not genuine they have been named already.
		c.fault(Head, "the transcript ends with %s; %s is expected", v.next.PreviousHash, v.expect.Head)
	}
	return c.faults
}

// A check is that of one entry.
type check struct {
	*Verifier
	Entry
	genuine bool // the broker accepted the entry as it stands here
	inPlace bool // and it comes after the genuine entries so far
	faults  []Fault
}

func (c *check) fault(rule Rule, format string, args ...any) {
	c.faults = append(c.faults, Fault{
		Line: c.lines, Sequence: c.Stamp.Sequence, Rule: rule, Why: fmt.Sprintf(format, args...),
	})
}

// isGenuine tells whether the broker accepted this entry, as it stands here,
// in this session; then what the entry says of its own place is so.
func (c *check) isGenuine() bool {
	unchanged := c.Recomputed == c.Stamp.Hash
	ours := c.Stamp.Receipt.Broker == c.broker
	receipted := ours && c.Stamp.VerifyReceipt(c.broker) == nil
	if c.session == "" && unchanged && receipted {
		c.session = c.Message.Session
	}
	foreign := c.isForeign()
	if foreign {
		c.fault(Session, "the entry is of session %s; the transcript, of %s", c.Message.Session, c.session)
	}
	if !unchanged {
		c.fault(Hash, "the entry was changed: its hash is %s, not %s as it says", c.Recomputed, c.Stamp.Hash)
	}
	switch {
	case !ours:
		c.fault(Receipt, "the receipt is by %q, not by the broker %s", c.Stamp.Receipt.Broker, c.broker)
	case !receipted:
		c.fault(Receipt, "the broker did not sign that it accepted this hash at this time into this state")
	}
	return unchanged && receipted && !foreign
}

// isForeign tells whether the entry is of another session; which one the
// transcript is of, the first genuine entry says unless it is expected.
func (c *check) isForeign() bool { return c.session != "" && c.Message.Session != c.session }
