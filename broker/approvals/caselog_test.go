package approvals

import (
	"testing"

	"github.com/parley-asp/parley/escalation"
)

// A case that was forgotten does not come back when the stream delivers what memory had of it
// already, and comes back with the next action.
func TestForgottenCase(t *testing.T) {
	t.Parallel()
	const id escalation.ID = "e1"
	c := newCases(nil)
	c.put(id, caseAt{sequence: 2})
	c.forget(id)
	for _, step := range []struct {
		sequence        uint64
		kept, forgotten int
	}{{1, 0, 1}, {2, 0, 0}, {3, 1, 0}} {
		c.follow(id, caseAt{sequence: step.sequence})
		if len(c.byID) != step.kept || len(c.forgotten) != step.forgotten {
			t.Errorf("after action %d memory has %d cases and %d that were forgotten, want %+v", step.sequence, len(c.byID), len(c.forgotten), step)
		}
	}
}
