package escalation

import (
	"time"

	"github.com/parley-asp/parley/performatives"
)

// An Exact is a commitment that names no proposal, or an amendment of a commitment, and the hash of what it says.
type Exact struct {
	Offer string
	Terms performatives.Hash
}

// A Frame is what a proposal says besides its terms, and an agreement has.
type Frame struct {
	Type, Subject, Schema, Category string
	With                            performatives.Agent // the other side, of several; "" is all
	From                            time.Time           // zero is at once
	Until                           *time.Time          // nil is for ever
}

// Differs names what is another in a frame than in the one that was shown; "" if nothing is. What begins between the opening
// of the session and now begins at once.
func (f *Frame) Differs(shown *Frame, opened, now time.Time) string {
	atOnce := func(from time.Time) bool { return from.IsZero() || !from.Before(opened) && !from.After(now) }
	for _, m := range []struct {
		name string
		same bool
	}{
		{"type", f.Type == shown.Type}, {"subject", f.Subject == shown.Subject}, {"schema", f.Schema == shown.Schema}, {"recipient", shown.With == "" || f.With == shown.With},
		{"category", f.Category == shown.Category}, {"effectiveUntil", f.Until == nil && shown.Until == nil || f.Until != nil && shown.Until != nil && f.Until.Equal(*shown.Until)},
		{"effectiveFrom", f.From.Equal(shown.From) || atOnce(f.From) && atOnce(shown.From)},
	} {
		if !m.same {
			return m.name
		}
	}
	return ""
}
