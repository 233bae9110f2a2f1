// Package node is one parley node: the NATS server (or a connection to one
// elsewhere), the login, the broker and the HTTP listener, started in order and
// stopped in the reverse.
package node

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/embedded"
	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
)

// Options say what a node runs. Data is needed; the rest has defaults.
type Options struct {
	Data   string        // directory of the store and the keys
	Listen string        // host:port of NATS; port -1 picks a free one
	HTTP   string        // host:port of HTTP; "" is none
	Dev    bool          // no login; loopback only
	Sync   time.Duration // how often the store is fsynced; 0 is before each acceptance

	NATS        string        // URL of an external server; "" is an embedded one
	NATSOptions []nats.Option // how to log in there
	Replicas    int           // of each stream; more than 1 needs an external cluster

	Policy performatives.Policy
	Log    *zap.Logger
}

// A Node is running until it is closed.
type Node struct {
	*broker.Broker
	URL      string // where principals connect
	HTTPAddr string

	keys   keys
	server *embedded.Server
	web    *web
	conns  []*nats.Conn
	stop   func()
}

type keys struct{ broker, operator, callout, issuer nkeys.KeyPair }

func openKeys(dir string) (k keys, err error) {
	for _, f := range []struct {
		into   *nkeys.KeyPair
		file   string
		create func() (nkeys.KeyPair, error)
	}{
		{&k.broker, BrokerSeed, nkeys.CreateUser},
		{&k.operator, OperatorSeed, nkeys.CreateUser},
		{&k.callout, calloutSeed, nkeys.CreateUser},
		{&k.issuer, issuerSeed, nkeys.CreateAccount},
	} {
		if *f.into, err = seed(dir, f.file, f.create); err != nil {
			return k, err
		}
	}
	return k, nil
}

// Start starts a node; when it returns, the broker is serving.
func Start(ctx context.Context, o Options) (n *Node, err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Dev {
		for _, address := range []string{o.Listen, o.HTTP} {
			if err := loopbackOnly(address); err != nil {
				return nil, err
			}
		}
	}
	n = &Node{}
	defer func() {
		if err != nil {
			n.end()
			n = nil
		}
	}()
	if n.keys, err = openKeys(o.Data); err != nil {
		return n, err
	}
	inside, err := n.connect(o)
	if err != nil {
		return n, err
	}
	signer, err := performatives.NewSigner(n.keys.broker)
	if err != nil {
		return n, err
	}
	if n.Broker, err = broker.Open(ctx, broker.Options{
		Conn: inside, Signer: signer, Dev: o.Dev, Alone: o.NATS == "", Replicas: o.Replicas, Policy: o.Policy, Log: o.Log,
	}); err != nil {
		return n, err
	}
	if !o.Dev && o.NATS == "" {
		if err := n.openLogin(o.Log); err != nil {
			return n, err
		}
	}
	if o.HTTP != "" {
		if n.web, err = openWeb(o.HTTP, n); err != nil {
			return n, err
		}
		n.HTTPAddr = n.web.addr
	}
	return n, nil
}

// connect starts the embedded server, or logs in to the one elsewhere.
func (n *Node) connect(o Options) (*nats.Conn, error) {
	if o.NATS != "" {
		n.URL = o.NATS
		return n.dial(append(o.NATSOptions, nats.Name("parley broker"))...)
	}
	var public [3]string
	for i, key := range []nkeys.KeyPair{n.keys.broker, n.keys.callout, n.keys.issuer} {
		var err error
		if public[i], err = key.PublicKey(); err != nil {
			return nil, err
		}
	}
	var err error
	n.server, err = embedded.Start(embedded.Options{
		StoreDir: filepath.Join(o.Data, "nats"), Listen: o.Listen, Dev: o.Dev, SyncInterval: o.Sync,
		Broker: public[0], Callout: public[1], CalloutIssuer: public[2], Log: o.Log.Named("nats"),
	})
	if err != nil {
		return nil, err
	}
	n.URL = n.server.ClientURL()
	return n.inside(n.keys.broker, "parley broker")
}

// inside connects in process.
func (n *Node) inside(key nkeys.KeyPair, name string) (*nats.Conn, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return n.dial(n.server.InProcess(), nats.Nkey(public, key.Sign), nats.Name(name))
}

func (n *Node) dial(options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(n.URL, append(options, nats.MaxReconnects(-1))...)
	if err == nil {
		n.conns = append(n.conns, nc)
	}
	return nc, err
}

// openLogin answers logins with what the registry says.
func (n *Node) openLogin(log *zap.Logger) error {
	nc, err := n.inside(n.keys.callout, "parley login")
	if err != nil {
		return err
	}
	operator, err := n.keys.operator.PublicKey()
	if err != nil {
		return err
	}
	n.stop, err = login.Serve(nc, n.keys.issuer, func(key string) (login.Identity, bool) {
		if key == operator {
			return login.Identity{Name: login.OperatorName, Role: login.Operator}, true
		}
		a, ok := n.Principal(performatives.Key(key))
		return login.Identity{Name: a.Token(), Role: login.Principal}, ok
	}, log)
	return err
}

// Operator is the operator's key, which the node made for its owner.
func (n *Node) Operator() nkeys.KeyPair { return n.keys.operator }

// Close stops serving, finishes what was accepted, and stops the server.
func (n *Node) Close(ctx context.Context) error {
	if n.web != nil {
		n.web.close(ctx)
	}
	err := n.Broker.Close(ctx)
	n.end()
	return err
}

// Crash takes the server away under the broker, for tests of what is left.
func (n *Node) Crash() {
	n.server.Shutdown()
	n.server = nil
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.Broker.Close(ctx) //nolint:errcheck // there is nobody left to say goodbye to
	n.end()
}

func (n *Node) end() {
	if n.stop != nil {
		n.stop()
	}
	for _, nc := range n.conns {
		nc.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
	}
}

// ErrNotLoopback is for --dev on an address that others can reach.
var ErrNotLoopback = errors.New("--dev has no login: it listens on loopback only")

func loopbackOnly(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ErrNotLoopback
	}
	return nil
}
