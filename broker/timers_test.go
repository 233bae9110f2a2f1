package broker_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/test/fault"
)

// A session that is over has no timer any more, whether a party closed it, also where the broker had
// forgotten it meanwhile, or the clock; one that is open has one.
func TestTimersOfWhatIsOver(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{})
	var all []*fault.Session
	for range 4 {
		all = append(all, w.Open(alpha, beta))
	}
	w.holds(api.TimersStream, 4)
	all[0].Say(alpha, "CLOSE", "{}")
	w.holds(api.TimersStream, 3)
	w.b.Crash()
	w.b.Up()
	all[1].Say(beta, "CLOSE", "{}")
	w.holds(api.TimersStream, 2)
	w.Invite(alpha, beta, 300*time.Millisecond).Closed(beta, "invitation_timeout")
	w.holds(api.TimersStream, 2)
	all[2].Say(beta, "OBSERVE", `{"subject":"on we go"}`)
	all[2].Check(alpha, beta)
}
