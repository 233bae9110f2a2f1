package store

import (
	"errors"
	"testing"
)

func TestCheckServer(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{
		"2.12.0": false, "2.12.0-RC.1": false, "2.12.0-beta.2": false, "2.12.1-dev": false, "2.15.3": false, "10.0.0": false,
		"2.11.9": true, "2.9.25": true, "1.40.0": true, "": true, "nightly": true,
	} {
		if err := CheckServer(version); errors.Is(err, ErrServerTooOld) != old {
			t.Errorf("server %q: %v, want too old: %t", version, err, old)
		}
	}
}
