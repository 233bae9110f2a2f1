package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/internal/background"
)

// Close ends what runs and what waits to run, and lets nothing start after it.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work := background.New()
		ended, late := false, false
		work.Go(func(ctx context.Context) { <-ctx.Done(); ended = true })
		work.After(time.Hour, func(context.Context) { late = true })
		synctest.Wait()
		work.Close()
		if !ended || late {
			t.Errorf("the running function ended: %v; the delayed one ran: %v", ended, late)
		}
		if work.Go(func(context.Context) { t.Error("it ran after Close") }) {
			t.Error("Go took a function after Close")
		}
	})
}

func TestAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work := background.New()
		defer work.Close()
		begin, ran := time.Now(), make(chan time.Duration, 1)
		work.After(3*time.Second, func(context.Context) { ran <- time.Since(begin) })
		if after := <-ran; after != 3*time.Second {
			t.Errorf("it ran after %s, want 3 s", after)
		}
	})
}
