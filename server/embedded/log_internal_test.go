package embedded

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// What a start after a kill reads again is no warning. What may be damage is.
func TestAfterKill(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	l := newLogger(zap.New(core))
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

// However much a client makes the server say, the log has little of it, and all that the server says of itself.
func TestLinesOfClients(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	l := newLogger(zap.New(core))
	long := strings.Repeat("x", 4000)
	for n := range 1000 {
		l.Errorf(`127.0.0.1:39526 - cid:132 - "nats.go" - Publish Violation - Subject %q`, long)
		l.Warnf("JetStream consumer 'A > ASP_INBOX > acme_com~alice' ACK sequence %d past last stream sequence of 3", n)
		l.Warnf("JetStream consumer 'A > ASP_INBOX > acme_com~alice' bad NAK delay value: %q", long)
	}
	got := seen.TakeAll()
	if len(got) != 2*mostOfClients || len(got[0].ContextMap()["line"].(string)) != longestLine { // errors and warnings
		t.Errorf("of a client it logs %d lines, the first %+v", len(got), got[0])
	}
	for n := range 100 {
		l.Errorf("JetStream failed to do %d", n)
	}
	if got := seen.Len(); got != 100 {
		t.Errorf("of itself it logs %d lines of 100", got)
	}
}
