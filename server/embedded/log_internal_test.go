package embedded

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// What a start after a kill reads again is no warning. What may be damage is.
func TestAfterKill(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	l := &logger{out: zap.New(core)}
	for format, want := range map[string]zapcore.Level{
		"Filestore [X] Stream state outdated, last block has additional entries, will rebuild":      zapcore.InfoLevel,
		"Filestore [X] TTL state is outdated; attempting to recover using linear scan (seq 1 to 2)": zapcore.InfoLevel,
		"Filestore [X] Recovering stream state from index errored: prior state file":                zapcore.InfoLevel,
		"Filestore [X] Recovering stream state from index errored: corrupt state file":              zapcore.WarnLevel,
		"Filestore [X] Stream state detected prior state, could not locate msg block 3":             zapcore.WarnLevel,
		"Filestore [X] Stream state checksum did not match":                                         zapcore.WarnLevel,
		"Filestore [X] Error loading msg block with seq 7 for recovering per-message state":         zapcore.WarnLevel,
	} {
		l.Warnf("%s", format)
		if got := seen.TakeAll()[0]; got.Level != want || got.Message != format {
			t.Errorf("%s: %s %q, want %s", format, got.Level, got.Message, want)
		}
	}
}
