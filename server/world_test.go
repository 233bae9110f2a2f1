package server_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")

	patience = 30 * time.Second // for what must come
)

// world is a node and its operator.
type world struct {
	*testing.T
	ctx      context.Context
	node     *server.Node
	operator *client.Operator
}

// everywhere runs a test on the embedded server, and on one in a process of its own in each mode.
func everywhere(t *testing.T, test func(*testing.T, server.Options)) {
	t.Helper()
	operated(t, test)
	t.Run("config", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		test(t, server.Options{Data: data, NATS: external(t, data)})
	})
}

// operated runs a test on the servers that are in operator mode.
func operated(t *testing.T, test func(*testing.T, server.Options)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"})
	})
	t.Run("operator", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		test(t, server.Options{Data: data, NATS: operator(t, data), NATSCreds: filepath.Join(data, server.CredsFile)})
	})
}

// start starts a node; the operator connects with these certificates, if there are any.
func start(t *testing.T, o server.Options, operator ...server.TLS) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx}
	var err error
	w.node, err = server.Start(ctx, o)
	must(t, err)
	t.Cleanup(func() { must(t, w.node.Close(context.WithoutCancel(ctx))) })
	signer, err := performatives.NewSigner(w.node.Operator())
	must(t, err)
	options := []client.Option{client.Key(signer)}
	for _, how := range operator {
		options = append(options, client.NATS(how.Client(w.node.URL)...))
	}
	w.operator, err = client.ConnectOperator(ctx, w.node.URL, options...)
	must(t, err)
	t.Cleanup(func() { w.operator.Close() })
	return w
}

// gate is a log that stops the login of one that is let in, when that has been decided and
// not yet answered.
type gate struct{ reached, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// log counts the logins of those that are let in, from 1, and stops one.
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
func (w *world) registers(a performatives.Agent) nkeys.KeyPair {
	w.Helper()
	key := newKey(w.T)
	w.gives(a, key)
	return key
}

func (w *world) gives(a performatives.Agent, key nkeys.KeyPair) {
	w.Helper()
	_, err := w.operator.AddAgent(w.ctx, api.Card{Agent: a, Key: performatives.Key(public(w.T, key))})
	must(w.T, err)
}

// A line is a connection that does not come back once it is closed.
type line struct {
	*nats.Conn
	closed chan struct{}
}

func (w *world) dial(a performatives.Agent, options ...nats.Option) (line, error) {
	l := line{closed: make(chan struct{})}
	var err error
	l.Conn, err = nats.Connect(w.node.URL, append(options,
		nats.NoReconnect(), nats.Timeout(patience), nats.CustomInboxPrefix("_INBOX."+a.Token()),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err == nil {
		w.Cleanup(l.Close)
	}
	return l, err
}

// logsIn connects as a principal, who must be let in.
func (w *world) logsIn(a performatives.Agent, key nkeys.KeyPair) line {
	w.Helper()
	l, err := w.dial(a, withKey(w.T, key))
	must(w.T, err)
	return l
}

// isOut waits until the server has closed the connection.
func (w *world) isOut(l line) {
	w.Helper()
	select {
	case <-l.closed:
	case <-w.ctx.Done():
		w.Fatal("the connection is still there")
	}
}

// asks makes a call that the broker must answer.
func (w *world) asks(l line, a performatives.Agent) {
	w.Helper()
	res, err := l.RequestWithContext(w.ctx, api.Call(a, api.SessionList.Name), nil)
	must(w.T, err)
	if code := res.Header.Get("Nats-Service-Error-Code"); code != "" {
		w.Fatalf("refused: %s", res.Data)
	}
}

func newKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	must(t, err)
	return key
}

func withKey(t *testing.T, key nkeys.KeyPair) nats.Option {
	t.Helper()
	return nats.Nkey(public(t, key), key.Sign)
}

func public(t *testing.T, key nkeys.KeyPair) string {
	t.Helper()
	pub, err := key.PublicKey()
	must(t, err)
	return pub
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// allowed says whether the server let the connection do what it did last. The server's error
// arrives before the answer to the flush.
func allowed(t *testing.T, l line) bool {
	t.Helper()
	must(t, l.Flush())
	err := l.LastError()
	if err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Fatal(err)
	}
	return err == nil
}
