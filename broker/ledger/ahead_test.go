package ledger

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A witness that has cosigned more than there is waits for another broker's leaves; if they do not come, it fails, and the log
// names it.
func TestWitnessAhead(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	w := &cosigner{log: zap.New(core)}
	for range 3 {
		w.answered(&aheadError{10, 5})
	}
	if w.failed > 0 || logged.Len() > 0 {
		t.Errorf("it fails at once, %d times", w.failed)
	}
	w.ahead = w.ahead.Add(-time.Hour)
	if w.answered(&aheadError{15, 12}); w.failed > 0 {
		t.Error("it fails for leaves that have arrived")
	}
	w.ahead = w.ahead.Add(-aheadFor)
	w.answered(&aheadError{15, 14})
	if w.failed != 1 || logged.Len() != 1 || !w.until.After(time.Now()) {
		t.Errorf("after a while it has failed %d times", w.failed)
	}
	w.answered(nil)
	w.answered(&aheadError{20, 14})
	if w.failed > 0 {
		t.Error("after a cosignature it fails at once")
	}
	w.answered(errors.New("away"))
	if w.failed != 1 || !w.ahead.IsZero() {
		t.Error("a witness that is away counts as ahead")
	}
}
