package archive

import (
	"cmp"
	"time"

	"github.com/parley-asp/parley/session"
)

// A Policy says when sessions that have ended leave the stream of transcripts, and
// how long the archive keeps them. The zero Policy archives nothing.
type Policy struct {
	After  time.Duration // how long ago a session has ended; 0 is never
	Every  time.Duration // how often due sessions move; 0 is a quarter of After, at most an hour
	AtOnce uint          // so many due sessions do not wait for that; 0 is 100,000
	Closed time.Duration // how long a closed session is kept from then on; 0 is for ever
	Failed time.Duration // the same of a failed one

	Retry    time.Duration // until a session that could not be moved is tried again; 0 is 5 seconds
	Takeover time.Duration // until another broker moves what one has begun; 0 is 15 seconds

	Erasure bool // operators may erase sessions
	IfThere bool // a store that was made without an archive is left as it is, and not refused
}

// keeps is how long the archive keeps a session that ended in a state; 0 is for ever.
func (p Policy) keeps(s session.Phase) time.Duration {
	if s == session.Failed {
		return p.Failed
	}
	return p.Closed
}

// Deletes reports whether some sessions are deleted after a time.
func (p Policy) Deletes() bool { return p.Closed > 0 || p.Failed > 0 }

// Over reports whether nothing of a session that ended at a time is kept any more, whatever it ended as.
func (p Policy) Over(ended, now time.Time) bool {
	return p.Closed > 0 && p.Failed > 0 && now.Sub(ended) > p.After+p.every()+max(p.Closed, p.Failed)
}

// Sessions move in bursts. The server writes a summary of each stream every two
// minutes. After a kill it reads a stream from its summary if nothing was added
// since, and otherwise whole: streams that are seldom written are quick to open.
const (
	maxInterval = time.Hour // between bursts
	atOnce      = 100_000   // due sessions do not wait for a burst
	retry       = 5 * time.Second
	takeover    = 15 * time.Second
)

// every is how often due sessions move.
func (p Policy) every() time.Duration {
	if p.Every > 0 {
		return p.Every
	}
	return min(p.After/4, maxInterval)
}

// untilBurst is how long it is until the next burst. All brokers have theirs at the same
// times by their clocks, so that the archive is not written between them.
func (p Policy) untilBurst(now time.Time) time.Duration {
	every := p.every()
	if every < pollInterval {
		return 0
	}
	return now.Truncate(every).Add(every).Sub(now)
}

// sessionsAtOnce are so many that they do not wait for a burst.
func (p Policy) sessionsAtOnce() uint64 { return uint64(cmp.Or(p.AtOnce, atOnce)) }
