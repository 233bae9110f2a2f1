// Package natskit has what tests need of NATS, keys and clocks where no broker is needed. It imports nothing of the
// broker, so a package's own tests use it without compiling once more all that imports the package. What needs a
// broker has [github.com/parley-asp/parley/test/testkit].
package natskit

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/session"
)

// Patience is how long a test waits for what must happen before it fails. It is long, since other
// work may slow the machine down, and costs nothing where it happens.
const Patience = 3 * time.Minute

// Shards is how many shards the stores of tests have, unless they say so themselves: PARLEY_TEST_SHARDS, or 1.
var Shards = func() int {
	n, err := strconv.Atoi(os.Getenv("PARLEY_TEST_SHARDS"))
	if err != nil {
		return 1
	}
	return n
}()

// Must ends the test if something failed that the test only needs.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CodeOf is the code of a refusal, "" if the error is none.
func CodeOf(err error) session.Code {
	if r, ok := errors.AsType[*session.Refusal](err); ok {
		return r.Code
	}
	return ""
}

// A Server is an embedded NATS server on disk and without logins, for tests of what is between
// it and a broker.
type Server struct {
	*embedded.Server
	URL    string
	Key    nkeys.KeyPair // of every broker
	Signer performatives.Signer

	t     testing.TB
	login []nats.Option // of brokers
}

// ServerAt is a server without logins that the test has started itself.
func ServerAt(t testing.TB, url string) *Server {
	t.Helper()
	key := NewKey(t)
	return &Server{t: t, URL: url, Key: key, Signer: Signer(t, key)}
}

// StartServer starts a server and shuts it down with the test.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return StartSharded(t, Shards)
}

// StartSharded starts one for a store with a number of shards.
func StartSharded(t testing.TB, shards int) *Server {
	t.Helper()
	s := &Server{t: t, Key: NewKey(t)}
	s.Signer = Signer(t, s.Key)
	logins, _ := NewLogins(t)
	var err error
	s.Server, err = embedded.Start(embedded.Options{
		StoreDir: t.TempDir(), Listen: "127.0.0.1:-1", Dev: true, SyncInterval: time.Minute, Shards: shards,
		Broker: string(s.Signer.Key()), Authority: logins,
	})
	Must(t, err)
	t.Cleanup(s.Shutdown)
	s.URL, s.login = s.ClientURL(), []nats.Option{s.InProcess(), Bare(t, s.Key)}
	return s
}

// Connect connects to the server as a broker does, which may use JetStream.
func (s *Server) Connect(options ...nats.Option) *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.URL, append(slices.Clone(s.login), options...)...)
	Must(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}
