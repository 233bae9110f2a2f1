package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// longLag is long for a test, and still twice as short as an invitation may take here: the
// timer of what falls due sooner is set at once.
const longLag = 20 * time.Minute

func longInvitations(o *testkit.Options) { o.Policy.InvitationTimeout = time.Hour.Milliseconds() }

// While timers and rows lag, nothing of them is in the store, and nobody who asks can tell: not of this
// broker, not of the next after it was killed, which has written all of it before it serves. A deadline
// that falls due meanwhile ends its session.
func TestKilledWithinTheLag(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{}, longInvitations)
	w.b.Broker.Command.Lag(longLag)
	var all []*fault.Session
	for n := range 6 {
		s := w.Open(alpha, beta)
		if n < 4 {
			s.Say(alpha, "CLOSE", "{}")
		}
		all = append(all, s)
	}
	w.holds(api.IndexStream, 0)
	w.holds(api.TimersStream, 0)
	asked := func() {
		t.Helper()
		for state, want := range map[string]int{"CLOSED": 4, "INTRODUCED": 2} {
			var found api.Sessions
			if w.Call(api.SessionList.Name, fmt.Sprintf(`{"state":%q}`, state), &found); len(found.Sessions) != want {
				t.Errorf("%d sessions are listed as %s, want %d", len(found.Sessions), state, want)
			}
		}
	}
	asked()
	w.b.Crash()
	w.b.Up()
	asked()
	w.holds(api.IndexStream, 6)
	w.holds(api.TimersStream, 2)
	for _, s := range all {
		s.Again()
		s.Check(alpha, beta)
	}
	w.b.Broker.Command.Lag(2 * time.Second)
	w.Invite(alpha, beta, 300*time.Millisecond).Closed(beta, "invitation_timeout")
	w.holds(api.IndexStream, 7)
	w.holds(api.TimersStream, 2)
}

// What is over within the lag has one row and never had a timer; a broker that is stopped within
// it leaves nothing to the next one.
func TestOverWithinTheLag(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{}, longInvitations)
	w.b.Broker.Command.Lag(longLag)
	for range 3 {
		w.Open(alpha, beta).Say(alpha, "CLOSE", "{}")
	}
	w.Open(alpha, beta)
	w.b.Down()
	w.b.Up()
	for stream, messages := range map[string]uint64{api.IndexStream: 4, api.TimersStream: 1} {
		if state := w.stream(stream).CachedInfo().State; state.LastSeq != messages || state.Msgs != messages {
			t.Errorf("%s had %d messages and has %d, want %d", stream, state.LastSeq, state.Msgs, messages)
		}
	}
}
