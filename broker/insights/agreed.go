package insights

import (
	"cmp"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// A session counts as agreed once an agreement was made (COMMITMENTS.md C1): in asp/1 by the commitment that all
// have accepted, or by a CLOSE as completed after a proposal was; in convergent/1 by a COMMIT; else by an ACCEPT.

// A commitment of asp/1 makes an agreement once all that it is addressed to have accepted it.
type commitment struct {
	needed int
	by     map[performatives.Agent]bool
}

func (r *reader) commits(e entry, at time.Time) {
	b := e.Content.Body
	switch {
	case b.Outcome == "rejected":
	case r.digest.Mode == modes.Convergent.Name:
		r.digest.Agreed = at
	case len(e.Recipient) > 0:
		r.commitments[b.Commits] = &commitment{1, map[performatives.Agent]bool{}}
	default:
		r.commitments[b.Commits] = &commitment{len(r.digest.Principals) - 1, map[performatives.Agent]bool{}}
	}
}

func (r *reader) accepts(reference string, side performatives.Agent, at time.Time) {
	if c := r.commitments[reference]; c != nil {
		if c.by[side] = true; len(c.by) == c.needed {
			r.digest.Agreed = at
		}
	}
}

// completes notes the agreements that a CLOSE makes, where nobody binds itself by COMMIT.
func (r *reader) completes(e entry, at time.Time) {
	outcome := cmp.Or(e.Content.Body.Outcome, performatives.Completed)
	if r.terms && outcome == performatives.Completed && r.state != session.Agreeing.String() && r.state != session.Executing.String() {
		r.digest.Agreed = at
	}
}
