package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-asp/parley/internal/background"
)

// A renewal is of all who wait for it: when the one who asked first gives up, the others get it
// all the same.
func TestRenewalOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		written, begun := make(chan struct{}), 0
		l := &lease{work: background.New(), renew: func(ctx context.Context) error {
			begun++
			select {
			case <-written:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		defer l.work.Close()
		renewed := func(ctx context.Context) <-chan error {
			result := make(chan error, 1)
			go func() { result <- l.renewed(ctx) }()
			synctest.Wait()
			return result
		}
		impatient, giveUp := context.WithCancel(t.Context())
		first, second := renewed(impatient), renewed(t.Context())
		giveUp()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		close(written)
		if err := <-second; err != nil || begun != 1 {
			t.Errorf("who waited got %v, after %d renewals", err, begun)
		}
	})
}
