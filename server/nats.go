package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/embedded"
	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
)

// connect starts the embedded server, or finds the one elsewhere, and logs the broker in.
func (n *Node) connect(o Options, tlsConfig *tls.Config) (*nats.Conn, error) {
	if o.NATS != "" {
		n.URL = o.NATS
		if n.mode == foreign {
			return n.dial(o, append(o.credentials(), n.named(brokerName))...)
		}
		return n.login(o, login.BrokerAccount, n.keys.broker, n.named(brokerName))
	}
	public, err := n.keys.public()
	if err != nil {
		return nil, err
	}
	if n.lock, err = lock(o.Data); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Data, err)
	}
	n.server, err = embedded.Start(embedded.Options{
		StoreDir: filepath.Join(o.Data, "nats"), Listen: o.Listen, Dev: o.Dev, SyncInterval: o.interval(),
		TLS: tlsConfig, Websocket: o.Websocket,
		Broker: public.Broker, Callout: public.Callout, Authority: n.keys.authority, Log: o.Log.Named("nats"),
	})
	if err != nil {
		return nil, err
	}
	n.URL, n.WebsocketURL = n.server.ClientURL(), n.server.WebsocketURL()
	return n.login(o, login.BrokerAccount, n.keys.broker, n.named(brokerName))
}

// derivedSync is how often an embedded server has on disk what can be derived again, where
// the transcripts are there before each acceptance.
const derivedSync = 10 * time.Second

func (o Options) interval() time.Duration { return cmp.Or(o.Sync, derivedSync) }

// durable is what the broker waits for before it says that an act is accepted; nil is the
// server's own acknowledgement.
func (n *Node) durable(o Options) func(stream string, added int) error {
	if n.server == nil || o.Sync != 0 {
		return nil
	}
	return n.server.Durable
}

// syncedAfter is how long the server may take to have on disk what it acknowledged: an
// interval, and what a slow disk takes. Of a server elsewhere nobody knows.
func (n *Node) syncedAfter(o Options) time.Duration {
	if n.server == nil {
		return 0
	}
	return o.interval() + 5*time.Second
}

// The names of a node's connections, before its ID.
const (
	brokerName  = "parley broker"
	calloutName = "parley login"
	systemName  = "parley removal"
)

// named is how a connection of this node's is known from those of others, which have the same user.
func (n *Node) named(what string) nats.Option { return nats.Name(what + " " + n.id) }

// ErrNotLetIn is for a server elsewhere that was not configured for the node's keys. Where no
// other broker answers its logins, it says nothing for so long that the client gives up first.
var ErrNotLetIn = errors.New("the NATS server does not let the node's keys in")

// login connects with one of the node's own keys, as the one user that it is in an account.
func (n *Node) login(o Options, account string, key nkeys.KeyPair, options ...nats.Option) (*nats.Conn, error) {
	how, err := n.mode.login(n.keys, o, account, key)
	if err != nil {
		return nil, err
	}
	nc, err := n.dial(o, append(options, how)...)
	if network, ok := errors.AsType[*net.OpError](err); err != nil && n.server == nil &&
		!errors.Is(err, nats.ErrNoServers) && (!ok || network.Op != "dial") {
		err = fmt.Errorf("%w: %w", ErrNotLetIn, err)
	}
	return nc, err
}

// The pings by which a server that died without a word is noticed: another one of its cluster
// may be there.
const (
	pingEvery   = 2 * time.Second
	pingsMissed = 2
)

// reconnectWait is between two tries to reach a server that went away: acts wait for it.
const reconnectWait = 100 * time.Millisecond

func (n *Node) dial(o Options, options ...nats.Option) (*nats.Conn, error) {
	url := n.URL
	if n.server != nil {
		url = "nats://in.process"                                                  // where TLS is not spoken
		options = append(options, n.server.InProcess(), nats.Timeout(time.Minute)) // it is there, however busy the machine
	} else {
		options = append(append(options, o.NATSOptions...), o.TLS.Client(n.URL)...)
	}
	nc, err := nats.Connect(url, append(options, nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed))...)
	if err == nil {
		n.conns = append(n.conns, nc)
	}
	return nc, err
}

// openLogin answers logins with what the registry says.
func (n *Node) openLogin(o Options) error {
	nc, err := n.login(o, login.CalloutAccount, n.keys.callout, n.named(calloutName))
	if err != nil {
		return err
	}
	operator, err := n.keys.operator.PublicKey()
	if err != nil {
		return err
	}
	broker, err := n.keys.broker.PublicKey()
	if err != nil {
		return err
	}
	n.stop, err = login.Serve(nc, n.keys.issuer, func(key string) (login.Identity, bool) {
		switch key {
		case operator:
			return login.Identity{Name: login.OperatorName, Role: login.Operator}, true
		case broker:
			return login.Identity{Name: login.BrokerName, Role: login.Broker}, true
		}
		select {
		case <-n.ready:
		case <-n.ended:
			return login.Identity{}, false
		}
		a, ok := n.Principal(performatives.Key(key))
		return login.Identity{Name: a.Token(), Role: login.Principal, Groups: n.Groups(a)}, ok
	}, o.Log)
	return err
}
