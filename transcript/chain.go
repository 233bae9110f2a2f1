package transcript

import (
	"time"

	"github.com/parley-asp/parley/performatives"
)

// place checks the entry's place in the chain.
//
// A genuine entry says truly where it belongs, so the verifier follows those
// and looks at others in passing: one that was changed stands in its place, one
// that was inserted stands in none, and either way the next genuine entry is
// right where it is and gets no blame.
func (c *check) place() {
	at, first, here := c.Stamp.Sequence, c.next.Sequence, c.next.Sequence+c.doubtful
	c.inPlace = c.genuine && at >= first
	switch {
	case !c.genuine && at != here:
		c.fault(Sequence, "it says entry %d; entry %d stands here", at, here)
	case at > here:
		c.fault(Sequence, "%s missing before it", missing(here, at))
		c.lost = true
	case c.genuine && at < first:
		c.fault(Sequence, "entry %d stands here again or too late; entry %d is next", at, here)
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
	return "it does not link to the entry before it, whose hash is " + string(c.next.PreviousHash)
}

// times checks that acceptedAt never goes backwards, and that it is written in
// the one form that sorts.
func (c *check) times() {
	written := c.Stamp.Receipt.AcceptedAt
	at, err := time.Parse(performatives.TimeFormat, written)
	switch {
	case err != nil || at.Format(performatives.TimeFormat) != written:
		c.fault(Time, "acceptedAt is %q; want UTC with nine digits of a second", written)
	case at.Before(c.accepted):
		c.fault(Time, "it was accepted at %s, before the entry before it", written)
	case c.inPlace:
		c.accepted = at
	}
}

// once checks that no messageId stands twice.
func (c *check) once() {
	if before, again := c.seen[c.Message.ID]; again {
		c.fault(Duplicate, "message %s stands in entry %d already", c.Message.ID, before)
		return
	}
	if c.genuine {
		c.seen[c.Message.ID] = c.Stamp.Sequence
	}
}
