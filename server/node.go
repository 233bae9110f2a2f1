// Package server is one parley node: the NATS server (or a connection to one
// elsewhere), the login, the broker and the HTTP listener, started in order and
// stopped in the reverse.
package server

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/embedded"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/notify"
	"github.com/parley-asp/parley/performatives"
)

// Options say what a node runs. Data is needed; the rest has defaults.
type Options struct {
	Data   string        // directory of the store and the keys
	Listen string        // host:port of NATS; port -1 picks a free one
	HTTP   string        // host:port of HTTP; "" is none
	Dev    bool          // no login; loopback only
	Sync   time.Duration // how often the store is fsynced; 0 is before each acceptance

	TLS       TLS
	Websocket string // host:port of NATS over WebSocket, embedded only; "" is none

	NATS        string        // URL of an external server; "" is an embedded one
	NATSOptions []nats.Option // how the broker logs in there; nil is as Config has it, and logins are answered too
	NATSCreds   string        // instead: a credentials file; where Nsc wrote it, logins are answered too
	Replicas    int           // of each stream; more than 1 needs an external cluster

	Policy   performatives.Policy
	Limits   broker.Limits     // of one principal
	Archive  archive.Policy    // when sessions that are over leave the transcripts' stream
	InboxAge time.Duration     // how long inbox copies are kept; 0 is as long as they are, 7 days at first
	Rules    *escalation.Rules // who decides escalations; checked; nil is everybody who may
	Notify   *notify.Config    // who is told of escalations, and how; nil is nobody
	Log      *zap.Logger
	Now      func() time.Time // the broker's clock; nil is time.Now
}

// A Node is running until it is closed.
type Node struct {
	*Broker
	URL          string // where principals connect
	WebsocketURL string // the same over WebSocket, "" if they cannot
	HTTPAddr     string

	id     string // among the brokers at the same streams
	keys   keys
	mode   mode
	server *embedded.Server
	lock   *os.File // of the embedded server's store
	web    *web
	conns  []*nats.Conn

	notifier *notify.Notifier
	stop     func()
	ready    chan struct{} // closed once the broker is open
	ended    chan struct{}
	ending   sync.Once
}

// Start starts a node; when it returns, the broker is serving.
func Start(ctx context.Context, o Options) (n *Node, err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Dev {
		for _, address := range []string{o.Listen, o.HTTP, o.Websocket} {
			if err := loopbackOnly(address); err != nil {
				return nil, err
			}
		}
	}
	n = &Node{id: nuid.Next(), ready: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			n.end()
			n = nil
		}
	}()
	if n.keys, err = openKeys(o.Data); err != nil {
		return n, err
	}
	tlsConfig, err := o.TLS.server(o.NATS != "")
	if err != nil {
		return n, err
	}
	if n.mode, err = n.keys.mode(o); err != nil {
		return n, err
	}
	inside, err := n.connect(o, tlsConfig)
	if err != nil {
		return n, err
	}
	departed, silent, err := n.openDepartures(o)
	if err != nil {
		return n, err
	}
	signer, err := performatives.NewSigner(n.keys.broker)
	if err != nil {
		return n, err
	}
	reserved, err := n.keys.reserved()
	if err != nil {
		return n, err
	}
	if n.mode.servesLogins() { // the server listens already: who logs in now waits for the registry
		if err := n.openLogin(o); err != nil {
			return n, err
		}
	}
	if n.Broker, err = OpenBroker(ctx, broker.Options{
		ID: n.id, Conn: inside, Signer: signer, Dev: o.Dev, Alone: o.NATS == "", Replicas: o.Replicas, Policy: o.Policy, Limits: o.Limits, Escalations: o.Rules, Log: o.Log, Now: o.Now,
		Archive: o.Archive, InboxAge: o.InboxAge, Disconnect: departed, Silent: silent, Durable: n.durable(o), SyncedAfter: n.syncedAfter(o),
		Credentials: n.mode.credentials(n.keys), Reserved: reserved,
	}); err != nil {
		return n, err
	}
	close(n.ready)
	if err := n.openNotify(ctx, o); err != nil {
		return n, err
	}
	if o.HTTP != "" {
		if n.web, err = openWeb(o.HTTP, tlsConfig, o.Log.Named("http"), n); err != nil {
			return n, err
		}
		n.HTTPAddr = n.web.addr
	}
	return n, nil
}

// Operator is the operator's key, which the node made for its owner.
func (n *Node) Operator() nkeys.KeyPair { return n.keys.operator }

// ServesLogins tells whether the NATS server asks this node whom it may let in.
func (n *Node) ServesLogins() bool { return n.mode.servesLogins() }

// Close stops serving, finishes what was accepted, and stops the server.
func (n *Node) Close(ctx context.Context) error {
	if n.web != nil {
		n.web.close(ctx)
	}
	if n.notifier != nil {
		n.notifier.Close()
	}
	err := n.Broker.Close(ctx)
	n.end()
	return err
}

// Crash takes the embedded server away under the broker, for tests of what is left.
func (n *Node) Crash() {
	if n.web != nil {
		n.web.crash()
	}
	if n.notifier != nil {
		n.notifier.Close()
	}
	n.server.Shutdown()
	n.server = nil
	for _, nc := range n.conns {
		nc.Close() // or the broker would wait for answers
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.Broker.Close(ctx) //nolint:errcheck // there is nobody left to say goodbye to
	n.end()
}

func (n *Node) end() {
	n.ending.Do(func() { close(n.ended) })
	if n.stop != nil {
		n.stop()
	}
	for _, nc := range n.conns {
		nc.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
	}
	if n.lock != nil {
		n.lock.Close() //nolint:errcheck // it holds nothing
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
