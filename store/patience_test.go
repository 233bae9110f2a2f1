package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Whoever gets no answer when several brokers create a stream asks again, and then waits as long as it may.
func TestCreateAsksAgain(t *testing.T) {
	t.Parallel()
	unanswered := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	asked := 0
	made, err := create(t.Context(), func(ctx context.Context) (int, error) {
		if asked++; asked == 1 {
			return unanswered(ctx)
		}
		if _, bounded := ctx.Deadline(); bounded {
			t.Error("the second request has the deadline of the first")
		}
		return 7, nil
	})
	if made != 7 || err != nil || asked != 2 {
		t.Errorf("asked %d times: %d, %v", asked, made, err)
	}

	asked = 0
	if _, err := create(t.Context(), func(context.Context) (int, error) { asked++; return 0, jetstream.ErrStreamNotFound }); err == nil || asked != 1 {
		t.Errorf("a refusal: asked %d times, %v", asked, err)
	}

	asked = 0
	over, end := context.WithCancel(t.Context())
	if _, err := create(over, func(ctx context.Context) (int, error) { asked++; end(); return unanswered(ctx) }); err == nil || asked != 1 {
		t.Errorf("a start that is over: asked %d times, %v", asked, err)
	}
}
