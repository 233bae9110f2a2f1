package archive

import (
	"testing"
	"time"
)

// Sessions move a few times while they wait, together, at times on which brokers agree
// that never spoke of it; and those that wait for nothing at once.
func TestBursts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 10, 7, 0, 0, time.UTC)
	for _, c := range []struct {
		policy Policy
		want   time.Duration
	}{
		{Policy{After: time.Hour}, 8 * time.Minute},
		{Policy{After: 24 * time.Hour}, 53 * time.Minute},
		{Policy{After: time.Millisecond}, 0},
		{Policy{After: 3 * time.Second}, 0},
		{Policy{After: time.Hour, Every: 5 * time.Minute}, 3 * time.Minute},
		{Policy{After: time.Hour, Every: time.Millisecond}, 0},
	} {
		if got := c.policy.untilBurst(at); got != c.want {
			t.Errorf("%+v: the next burst in %s, want %s", c.policy, got, c.want)
		}
	}
	hourly := Policy{After: 4 * time.Hour}
	if a, b := at.Add(hourly.untilBurst(at)), at.Add(time.Minute).Add(hourly.untilBurst(at.Add(time.Minute))); !a.Equal(b) {
		t.Errorf("one broker's burst is at %s, the other's at %s", a, b)
	}
}
