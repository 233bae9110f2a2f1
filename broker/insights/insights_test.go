package insights

import (
	"testing"

	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A session counts for its principals. Where a row of an older version does not tell who they
// are, an open one counts for nobody who may be a delegate, and what is over is read.
func TestMayCount(t *testing.T) {
	t.Parallel()
	parties := []performatives.Agent{"agent://a.example/a", "agent://b.example/b", "agent://c.example/c", "agent://d.example/d"}
	for _, c := range []struct {
		state      session.Phase
		principals int
		want       [4]bool
	}{
		{session.Introduced, 3, [4]bool{true, true, true, false}},
		{session.Closed, 3, [4]bool{true, true, true, false}},
		{session.Introduced, 0, [4]bool{true, true, false, false}},
		{session.Closed, 0, [4]bool{true, true, true, true}},
		{session.Introduced, 9, [4]bool{true, true, true, true}},
	} {
		row := sessionlist.Row{State: c.state, Principals: c.principals, Participants: parties}
		for i, who := range parties {
			if got := mayCount(row, func(a performatives.Agent) bool { return a == who }); got != c.want[i] {
				t.Errorf("%s, of %d principals, %s: %t", c.state, c.principals, who, got)
			}
		}
	}
}
