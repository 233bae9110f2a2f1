package broker_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// TestPowerFailure takes what was derived away, as a power failure does with
// what is not fsynced, when it was noted as applied already: the next start
// finds it missing and derives it again.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true})
	w := fault.NewWitness(t, b.URL)
	s := w.Open(alpha, beta, gamma)
	for range 10 {
		s.Say(alpha, "OBSERVE", `{"subject":"x"}`)
	}
	last := uint64(13) // one invitation, two answers, ten remarks
	for b.Broker.Command.Applied() < last {
		testkit.Must(t, b.Broker.Command.Beat(t.Context()))
	}
	b.Crash()
	for _, stream := range []string{api.InboxStream, api.IndexStream} {
		empty(t, b.Data, stream)
	}
	b.Up()
	s.Check(alpha, beta, gamma)
	var found api.Sessions
	w.Call(api.SessionList.Name, `{}`, &found)
	if len(found.Sessions) != 1 {
		t.Errorf("the list of sessions has %+v", found)
	}
}

// TestDiskFails has the disk fail under a broker that promises what is on it:
// nothing is accepted from then on, nor shown, and a look at the broker tells.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	var failed atomic.Bool
	b, _ := at.OpenBroker(func(o *server.BrokerOptions) {
		o.Alone = true
		o.Durable = func(string, uint64) error {
			if failed.Load() {
				return syscall.EIO
			}
			return nil
		}
	})
	defer at.close(b)
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	s.Say(alpha, "OBSERVE", `{"subject":"x"}`)
	failed.Store(true)
	for range 3 {
		if code := s.Code(alpha, "OBSERVE", `{"subject":"y"}`); code != "unavailable" {
			t.Errorf("answered %q, want unavailable", code)
		}
		failed.Store(false) // which is no comfort: nobody knows what was lost
	}
	if b.Command.Healthy(t.Context()) == nil {
		t.Error("the broker says that it is well")
	}
}

// empty takes the messages of a stream away, and all that says there were any.
func empty(t *testing.T, data, stream string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "nats", "jetstream", "*", "streams", stream, "msgs", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		testkit.Must(t, os.Remove(f))
	}
}
