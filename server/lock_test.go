package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// Two NATS servers on one store would overwrite each other's files.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	first, err := server.Start(t.Context(), o)
	testkit.Must(t, err)
	if second, err := server.Start(t.Context(), o); !errors.Is(err, server.ErrInUse) {
		t.Errorf("%v, want %v", err, server.ErrInUse)
		if err == nil {
			testkit.Must(t, second.Close(context.WithoutCancel(t.Context())))
		}
	}
	testkit.Must(t, first.Close(context.WithoutCancel(t.Context())))
	again, err := server.Start(t.Context(), o)
	testkit.Must(t, err)
	testkit.Must(t, again.Close(context.WithoutCancel(t.Context())))
}
