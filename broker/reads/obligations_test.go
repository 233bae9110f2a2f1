package reads

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/session"
)

// While a session's clock stands still, what is due in it moves on, as long as it may be paused.
func TestDueMovesOnWhileTheClockStandsStill(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	stopped := &sessionlist.Stopped{Since: since, Until: since.Add(time.Hour)}
	due, until := api.Timestamp(since.Add(10*time.Hour)), api.Timestamp(since.Add(5*time.Hour))
	for _, c := range []struct {
		after, by time.Duration
		stopped   *sessionlist.Stopped
		status    string
		paused    bool
	}{
		{after: time.Minute},
		{after: time.Minute, by: time.Minute, stopped: stopped, paused: true},
		{after: 2 * time.Hour, by: time.Hour, stopped: stopped},
		{after: 2 * time.Hour, by: time.Hour, stopped: stopped, status: session.ObligationDisputed, paused: true},
		{after: -time.Minute, stopped: stopped, paused: true},
	} {
		v := moved(api.ObligationView{Status: c.status, Deadline: due, Delivery: &api.DeliveryView{Until: until}}, c.stopped, since.Add(c.after))
		if v.Deadline != later(due, c.by) || v.Delivery.Until != later(until, c.by) || v.Delivery.Paused != c.paused {
			t.Errorf("after %s it is %+v, %+v", c.after, v, v.Delivery)
		}
	}
	if v := moved(api.ObligationView{}, stopped, since.Add(time.Minute)); v.Deadline != "" {
		t.Errorf("what has no deadline is due %s", v.Deadline)
	}
}
