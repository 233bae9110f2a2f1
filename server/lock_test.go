package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-asp/parley/server"
)

// Two servers on one store would write over each other.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	first, err := server.Start(t.Context(), o)
	must(t, err)
	if second, err := server.Start(t.Context(), o); !errors.Is(err, server.ErrInUse) {
		t.Errorf("%v, want %v", err, server.ErrInUse)
		if err == nil {
			must(t, second.Close(context.WithoutCancel(t.Context())))
		}
	}
	must(t, first.Close(context.WithoutCancel(t.Context())))
	again, err := server.Start(t.Context(), o)
	must(t, err)
	must(t, again.Close(context.WithoutCancel(t.Context())))
}
