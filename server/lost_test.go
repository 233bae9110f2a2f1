package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

// A store that has lost what nothing else holds is not served as if it had never had it.
func TestStreamLost(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	o.Archive.After = 1 << 40
	testkit.Must(t, runs(t, o))
	for _, name := range []string{api.ArchiveStream, api.SessionsStream, api.CaseLogStream, api.StreamOf(api.AgentsBucket), api.InboxStream, api.IndexStream} {
		found, err := filepath.Glob(filepath.Join(o.Data, "nats", "jetstream", "*", "streams", name))
		testkit.Must(t, err)
		if len(found) != 1 {
			t.Fatalf("%s is in %v", name, found)
		}
		away := filepath.Join(t.TempDir(), name)
		testkit.Must(t, os.Rename(found[0], away))
		err = runs(t, o)
		if derived := name == api.InboxStream || name == api.IndexStream; derived {
			testkit.Must(t, err)
			continue
		}
		if !errors.Is(err, store.ErrLost) || !strings.HasSuffix(err.Error(), ": "+name) {
			t.Errorf("without %s it starts with %v", name, err)
		}
		if _, err := os.Stat(found[0]); err == nil {
			t.Errorf("it made an empty %s", name)
		}
		testkit.Must(t, os.Rename(away, found[0]))
		testkit.Must(t, runs(t, o))
	}
	found, err := filepath.Glob(filepath.Join(o.Data, "nats", "jetstream", "*", "streams", api.CaseLogStream))
	testkit.Must(t, err)
	testkit.Must(t, os.RemoveAll(found[0]))
	o.Lost = []string{api.CaseLogStream}
	testkit.Must(t, runs(t, o))
	o.Lost = nil
	testkit.Must(t, runs(t, o))
}
