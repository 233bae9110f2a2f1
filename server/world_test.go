package server_test

import (
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
)

// world is a server with a connected operator, and connections of principals.
type world struct{ *testkit.World }

// everywhere runs a test on the embedded NATS server and on an external one in each mode.
func everywhere(t *testing.T, test func(*testing.T, server.Options)) {
	t.Helper()
	operated(t, test)
	t.Run("config", func(t *testing.T) {
		t.Parallel()
		test(t, testkit.Configured(t))
	})
}

// operated runs a test on the NATS servers in operator mode.
func operated(t *testing.T, test func(*testing.T, server.Options)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, server.Options{Data: t.TempDir()})
	})
	t.Run("operator", func(t *testing.T) {
		t.Parallel()
		test(t, inOperatorMode(t))
	})
}

// inOperatorMode returns options for an external NATS server in operator mode, set up by Nsc.
func inOperatorMode(t testing.TB) server.Options {
	t.Helper()
	data := t.TempDir()
	script, err := server.Nsc(data, testkit.Shards)
	testkit.Must(t, err)
	url := testkit.StartServerProcess(t, testkit.Nsc(t, script)).URL()
	return server.Options{Data: data, NATS: url, NATSCreds: filepath.Join(data, server.CredsFile)}
}

// start starts a server and connects its operator, with these certificates if given.
func start(t *testing.T, o server.Options, operator ...server.TLS) world {
	t.Helper()
	w := world{testkit.NewWorld(t, o)}
	var options []client.Option
	for _, how := range operator {
		options = append(options, client.NATS(how.Client(w.URL)...))
	}
	w.OperatorClient(options...)
	return w
}

// gate blocks a login after it was authorized and before the reply. It hooks the log.
type gate struct{ reached, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// log counts authorized logins from 1 and blocks one of them.
func (g gate) log(stops int32) *zap.Logger {
	var logins atomic.Int32
	silent := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zap.DebugLevel)
	return zap.New(zapcore.RegisterHooks(silent, func(e zapcore.Entry) error {
		if e.Message == "login" && logins.Add(1) == stops {
			close(g.reached)
			<-g.open
		}
		return nil
	}))
}

// registers adds a principal with a new key, or gives it a new key.
func (w world) registers(a performatives.Agent) nkeys.KeyPair {
	w.Helper()
	key := testkit.NewKey(w)
	w.gives(a, key)
	return key
}

func (w world) gives(a performatives.Agent, key nkeys.KeyPair) {
	w.Helper()
	_, err := w.OperatorClient().AddAgent(w.Ctx, api.Card{Agent: a, Key: performatives.Key(testkit.Public(w, key)), LoginKeys: testkit.LoginKeys(w, key)})
	testkit.Must(w, err)
}

// dial connects without reconnecting.
func (w world) dial(a performatives.Agent, options ...nats.Option) (*nats.Conn, error) {
	p := testkit.Principal{TB: w, Agent: a, URL: w.URL}
	return p.Dial(options...)
}

// logsIn connects as a principal; the login must succeed.
func (w world) logsIn(a performatives.Agent, key nkeys.KeyPair) *nats.Conn {
	w.Helper()
	l, err := w.dial(a, testkit.Login(w, key))
	testkit.Must(w, err)
	return l
}

// asks makes a call that must succeed.
func (w world) asks(l *nats.Conn, a performatives.Agent) {
	w.Helper()
	res, err := testkit.Request(l, api.Call(a, api.SessionList.Name), nil)
	testkit.Must(w, err)
	if code := res.Header.Get("Nats-Service-Error-Code"); code != "" {
		w.Fatalf("refused: %s", res.Data)
	}
}
