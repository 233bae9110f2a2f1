package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

// A store that has lost what nothing else holds is not served as if it had never had it.
func TestStreamLost(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.ErrorLevel)
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", Log: zap.New(core)}
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
			if logged.FilterMessageSnippet("the store has lost a stream").FilterField(zap.String("stream", name)).Len() != 1 {
				t.Errorf("that %s is lost is not said", name)
			}
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
	removes := func(names ...string) {
		for _, name := range names {
			found, err := filepath.Glob(filepath.Join(o.Data, "nats", "jetstream", "*", "streams", name))
			testkit.Must(t, err)
			testkit.Must(t, os.RemoveAll(found[0]))
		}
	}
	removes(api.SessionsStream, api.InboxStream, api.LogStream)
	if err := runs(t, o); !errors.Is(err, store.ErrLost) {
		t.Errorf("without several it starts with %v", err)
	}
	archives := o.Archive
	o.Archive, o.Lost = archive.Policy{}, []string{api.SessionsStream}
	testkit.Must(t, runs(t, o))
	o.Archive, o.Lost = archives, nil // it has the archive still
	testkit.Must(t, runs(t, o))
}

// A store that has lost the stream that says how many shards it has is not taken for one of one.
func TestShardsLost(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", Shards: 2}
	testkit.Must(t, runs(t, o))
	found, err := filepath.Glob(filepath.Join(o.Data, "nats", "jetstream", "*", "streams", api.ShardsStream))
	testkit.Must(t, err)
	testkit.Must(t, os.RemoveAll(found[0]))
	for _, o.Shards = range []int{1, 2} {
		if err := runs(t, o); !errors.Is(err, store.ErrLost) {
			t.Errorf("with --shards %d it starts with %v", o.Shards, err)
		}
	}
	o.Lost = []string{api.ShardsStream}
	o.Shards = 1
	if err := runs(t, o); !errors.Is(err, store.ErrShards) {
		t.Errorf("as one of one shard it starts with %v", err)
	}
	o.Shards = 2
	testkit.Must(t, runs(t, o))
	o.Lost = nil
	testkit.Must(t, runs(t, o))
}

// What others have in the account is theirs to remove.
func TestStreamOfOthersRemoved(t *testing.T) {
	t.Parallel()
	p, o := configuredServer(t)
	testkit.Must(t, runs(t, o))
	nc, stop, err := server.Store(o)
	testkit.Must(t, err)
	defer stop()
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: api.SessionsStream + "_COPY", Mirror: &jetstream.StreamSource{Name: api.SessionsStream}})
	testkit.Must(t, err)
	testkit.Must(t, runs(t, o))
	testkit.Must(t, js.DeleteStream(t.Context(), api.SessionsStream+"_COPY"))
	testkit.Must(t, runs(t, o))
	p.Stop()
}
