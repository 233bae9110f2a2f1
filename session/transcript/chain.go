package transcript

import (
	"time"

	"github.com/parley-asp/parley/performatives"
)

// position checks the entry's sequence number and its link to the entry before.
//
// The sequence number of a genuine entry is true, so the verifier follows genuine
// entries. An entry that is not genuine was either changed in its position or
// inserted. Either way the next genuine entry is correct and has no fault.
func (c *check) position() {
	at, first, here := c.Stamp.Sequence, c.next.Sequence, c.next.Sequence+c.doubtful
	c.inPlace = c.genuine && at >= first
	switch {
	case !c.genuine && at != here:
		c.fault(Sequence, "its sequenceNumber is %d; entry %d belongs here", at, here)
	case at > here:
		c.fault(Sequence, "%s missing before it", missing(here, at))
		c.lost = true
	case c.genuine && at < first:
		c.fault(Sequence, "entry %d is repeated or out of order; entry %d belongs here", at, here)
	case at == first && (c.genuine || c.doubtful == 0) && c.Stamp.PreviousHash != c.next.PreviousHash:
		c.fault(Previous, "%s", c.wrongLink())
	}
	switch {
	case c.inPlace:
		c.next, c.doubtful = c.Next(), 0
	case !c.genuine:
		c.doubtful++
		c.lost = true
	}
}

func (c *check) wrongLink() string {
	if c.next.PreviousHash == performatives.NoHash {
		return "it is the first entry; its previousHash must be 64 zeros"
	}
	return "it does not link to the previous entry, whose hash is " + string(c.next.PreviousHash)
}

// times checks that acceptedAt never decreases, and that it has the one form that
// sorts.
func (c *check) times() {
	written := c.Stamp.Receipt.AcceptedAt
	at, err := time.Parse(performatives.TimeFormat, written)
	switch {
	case err != nil || at.Format(performatives.TimeFormat) != written:
		c.fault(Time, "acceptedAt is %q; want UTC with nine digits after the second", written)
	case at.Before(c.accepted):
		c.fault(Time, "it was accepted at %s, earlier than the previous entry", written)
	case c.inPlace:
		c.accepted = at
	}
}

// once checks that the messageId is unique.
func (c *check) once() {
	if before, again := c.seen[c.Message.ID]; again {
		c.fault(Duplicate, "message %s is already in entry %d", c.Message.ID, before)
		return
	}
	if c.genuine {
		c.seen[c.Message.ID] = c.Stamp.Sequence
	}
}
