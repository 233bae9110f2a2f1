package session_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/session"
)

// A pause moves no time beyond the last year that RFC 3339 can write.
func TestLatest(t *testing.T) {
	t.Parallel()
	var s session.State
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	for at, want := range map[time.Time]time.Time{last.Add(time.Hour): last, last: last, last.Add(-time.Hour): last.Add(-time.Hour)} {
		if got := s.Wall(at, at); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
