package server_test

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/store/backup"
	"github.com/parley-asp/parley/test/testkit"
)

// A restored store is complete before the first answer, whether its first broker is alone or may have
// peers: what the brokers of the backup left undone is nobody's work any more, and no peer is waited for.
func TestRestoredIsComplete(t *testing.T) {
	t.Parallel()
	from := testkit.NewWorld(t, testkit.Options{Lag: time.Hour}) // rows are not written yet
	var ids []performatives.SessionID
	for range 3 {
		ids = append(ids, from.Open(from.Principal(alpha), from.Principal(beta)))
	}
	nc, stop, err := server.Store(server.Options{Data: from.Data, NATS: from.URL})
	testkit.Must(t, err)
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	cases, err := js.Stream(t.Context(), api.CaseLogStream)
	testkit.Must(t, err)
	denies := cases.CachedInfo().Config
	denies.DenyDelete = true // as an earlier version did
	_, err = js.UpdateStream(t.Context(), denies)
	testkit.Must(t, err)
	file, err := os.Create(filepath.Join(t.TempDir(), "parley.tar"))
	testkit.Must(t, err)
	t.Cleanup(func() { file.Close() })
	_, err = backup.Write(t.Context(), nc, nil, file)
	testkit.Must(t, err)
	stop()
	for name, options := range map[string]func() server.Options{
		"alone":      func() server.Options { return server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"} },
		"with peers": func() server.Options { return testkit.Configured(t) },
	} {
		o := options()
		keys, err := server.Keys(from.Data)
		testkit.Must(t, err)
		if o.NATS == "" {
			for key, seed := range keys {
				testkit.Must(t, server.WriteSecret(o.Data+"/"+key, seed))
			}
		} else { // the server knows the other keys of this directory
			testkit.Must(t, os.WriteFile(filepath.Join(o.Data, server.BrokerSeed), keys[server.BrokerSeed], 0o600))
		}
		nc, stop, err := server.Store(o)
		testkit.Must(t, err)
		_, err = backup.Restore(t.Context(), nc, io.NewSectionReader(file, 0, math.MaxInt64), backup.Options{})
		testkit.Must(t, err)
		if js, err = jetstream.New(nc); err != nil {
			t.Fatal(err)
		}
		if cases, err = js.Stream(t.Context(), api.CaseLogStream); err != nil || cases.CachedInfo().Config.DenyDelete {
			t.Errorf("%s: sessions cannot be erased: %v", name, err)
		}
		stop()
		b := testkit.StartBroker(t, o)
		operator, err := client.ConnectOperator(t.Context(), b.URL, client.Login(testkit.Signer(t, b.Operator())))
		testkit.Must(t, err)
		if why := b.Broker.Parts.Ledger.Trouble(); why == nil {
			t.Errorf("%s: an operator does not learn that the log does not grow", name)
		}
		for _, id := range ids {
			entries, err := operator.Transcript(t.Context(), id)
			testkit.Must(t, err)
			held, err := operator.Held(t.Context(), id)
			testkit.Must(t, err)
			if faults, err := audit.Session(entries, held, modes.All()); err != nil || len(faults) > 0 || len(entries) == 0 {
				t.Errorf("%s: session %s, %d entries: %v %v", name, id, len(entries), faults, err)
			}
		}
		operator.Close()
	}
}
