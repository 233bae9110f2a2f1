package session

import (
	"cmp"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Close, deed{refers: (*Command).leaves, happens: ended})

// ended closes the session; while it is paused, only a human who may decide
// gets this far, and the escalation ends with it.
func ended(t *Command) {
	body := t.Message.Body.(*performatives.CloseBody) //nolint:errcheck,forcetypeassert // its act says so
	if t.left(); t.owing > 0 {
		return
	}
	t.Closing = cmp.Or(body.Outcome, performatives.Completed)
	if t.Closing == performatives.Completed && t.Mode.Commits {
		t.completeTerms()
	}
	t.endItems(t.From.Agent, escalation.EndClosed)
}
