package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// runs starts a broker, and stops it.
func runs(t *testing.T, o server.Options) error {
	t.Helper()
	s, err := server.Start(t.Context(), o)
	if err == nil {
		err = s.Close(t.Context())
	}
	return err
}

// A broker whose key is gone does not start on its store with a new one, and goes on once it is restored.
func TestKeyLost(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	testkit.Must(t, runs(t, o))
	file := filepath.Join(o.Data, server.BrokerSeed)
	testkit.Must(t, os.Rename(file, file+".away"))
	if err := runs(t, o); !errors.Is(err, server.ErrKeyLost) {
		t.Errorf("without its key it starts with %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it made a new key")
	}
	testkit.Must(t, os.Rename(file+".away", file))
	testkit.Must(t, runs(t, o))
}
