package natskit

import (
	"context"
	"testing"
	"time"

	"github.com/parley-asp/parley/internal/background"
)

// Between two looks at what has no signal there is a pause: firstPause, then twice as long each time, up
// to longestPause. What comes at once is seen at once, and looking takes no core from what is to come.
const (
	firstPause   = time.Millisecond
	longestPause = 200 * time.Millisecond
)

// Eventually waits until holds reports true, and fails the test after Patience. It is for what
// announces itself to nobody, such as a message that leaves a stream, the end of a goroutine of the
// program, or an election; what has a signal is waited for by it. It is the one
// place where tests pause.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := Until(ctx, holds); err != nil {
		t.Fatalf("%s: not within %s", what, Patience)
	}
}

// Until is [Eventually] for goroutines of a test, and until ctx ends; then it returns why.
func Until(ctx context.Context, holds func() bool) error {
	for pause := firstPause; !holds(); pause = min(2*pause, longestPause) {
		if err := background.Pause(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}
