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
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
)

// connect starts the embedded NATS server, or uses the external one, and logs the broker in.
func (s *Server) connect(o Options, tlsConfig *tls.Config) (*nats.Conn, error) {
	if o.NATS != "" {
		s.URL = o.NATS
		return s.connectBroker(o, brokerName)
	}
	public, err := s.keys.public()
	if err != nil {
		return nil, err
	}
	s.nats, err = embedded.Start(embedded.Options{
		StoreDir: filepath.Join(o.Data, "nats"), Listen: o.Listen, Dev: o.Dev, SyncInterval: o.interval(), Shards: o.Shards,
		TLS: tlsConfig, Websocket: o.Websocket,
		Broker: public.Broker, Callout: public.Callout, Authority: s.keys.authority, Log: o.Log.Named("nats"),
		Fsynced: s.probe.metrics().Fsynced, Flooded: s.flooded,
	})
	if err != nil {
		return nil, err
	}
	s.URL, s.WebsocketURL = s.nats.ClientURL(), s.nats.WebsocketURL()
	return s.connectBroker(o, brokerName)
}

// flooded keeps a principal away that sends the embedded server too much.
func (s *Server) flooded(name string) {
	select {
	case <-s.ready:
		if a, err := performatives.ParseToken(name); err == nil {
			s.Broker.Gateway.Flooded(a)
		}
	default: // nobody is let in yet
	}
}

// connectBroker logs the broker in to its own account, once more for each connection.
func (s *Server) connectBroker(o Options, name string) (*nats.Conn, error) {
	if s.mode == external {
		how, err := o.credentials()
		if err != nil {
			return nil, err
		}
		return s.dial(o, append(how, s.named(name))...)
	}
	return s.login(o, login.BrokerAccount, s.keys.login, s.named(name))
}

// derivedSync is the embedded server's fsync interval for derived data while
// transcripts are fsynced before each acceptance.
const derivedSync = 10 * time.Second

func (o Options) interval() time.Duration { return cmp.Or(o.Sync, derivedSync) }

// durable returns what the broker waits for before it accepts an act; nil means the publish acknowledgement. With an
// interval it waits for no message, but for what others must not go without: a transcript leaves its stream once the
// archive is on disk.
func (s *Server) durable(o Options) func(stream string, sequence uint64) error {
	if s.nats == nil {
		return nil
	}
	all := s.nats.Durable
	if o.Sync == 0 {
		return all
	}
	return func(stream string, sequence uint64) error {
		if sequence > 0 {
			return nil
		}
		return all(stream, 0)
	}
}

// broken is the embedded server's word on whether it stores anything; nil for an external one.
func (s *Server) broken() func() error {
	if s.nats == nil {
		return nil
	}
	return s.nats.Broken
}

// syncedAfter bounds the time from acknowledgement to fsync: one interval, and
// some time for a slow disk. It is 0, unknown, for an external server.
func (s *Server) syncedAfter(o Options) time.Duration {
	if s.nats == nil {
		return 0
	}
	return o.interval() + 5*time.Second
}

// The names of the connections, before the broker's ID.
const (
	brokerName  = "parley broker"
	bulkName    = "parley reader"   // what it carries may be large, and delays no act
	feedsName   = "parley follower" // what consumers deliver
	askedName   = "parley counter"  // what principals ask of JetStream
	calloutName = "parley login"
	systemName  = "parley removal"
)

// named names a connection. All brokers log in as the same user; the name tells their connections apart.
func (s *Server) named(what string) nats.Option { return nats.Name(what + " " + s.ID) }

// ErrNotLetIn means that an external server is not configured for the broker's
// keys. The login fails, or times out if no broker serves the auth callout.
var ErrNotLetIn = errors.New("the NATS server refuses the broker's keys")

// login connects with one of the broker's own keys to an account.
func (s *Server) login(o Options, account string, key nkeys.KeyPair, options ...nats.Option) (*nats.Conn, error) {
	how, err := s.mode.login(s.keys, o, account, key)
	if err != nil {
		return nil, err
	}
	nc, err := s.dial(o, append(options, how)...)
	for range 2 { // a slow machine may take longer for TLS and a login
		if !isTimeout(err) {
			break
		}
		nc, err = s.dial(o, append(options, how)...)
	}
	if network, ok := errors.AsType[*net.OpError](err); err != nil && s.nats == nil && WrongTLS(err, "") == "" &&
		!errors.Is(err, nats.ErrNoServers) && (!ok || network.Op != "dial") {
		err = fmt.Errorf("%w: %w", ErrNotLetIn, err)
	}
	return nc, err
}

// isTimeout tells errors of a server that took too long.
func isTimeout(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return errors.Is(err, nats.ErrTimeout) || ok && network.Timeout()
}

// Pings detect a server that died without closing the connection, so that the
// broker reconnects to another server of the cluster.
const (
	pingEvery   = 2 * time.Second
	pingsMissed = 2
)

// reconnectWait is short because acts wait for the reconnect.
const reconnectWait = 100 * time.Millisecond

func (s *Server) dial(o Options, options ...nats.Option) (*nats.Conn, error) {
	url := s.URL
	if s.nats != nil {
		url = "nats://in.process"                                                // no TLS in process
		options = append(options, s.nats.InProcess(), nats.Timeout(time.Minute)) // the server runs, however busy the machine is
	} else {
		options = append(append(options, o.NATSOptions...), o.TLS.Client(s.URL)...)
	}
	nc, err := nats.Connect(url, append(options, nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("connection", zap.Error(err)) }))...)
	if err == nil {
		s.conns.add(nc)
	}
	return nc, err
}

// openLogin serves the auth callout from the registry.
func (s *Server) openLogin(o Options) error {
	nc, err := s.login(o, login.CalloutAccount, s.keys.callout, s.named(calloutName))
	if err != nil {
		return err
	}
	operator, err := s.keys.operator.PublicKey()
	if err != nil {
		return err
	}
	broker, err := s.keys.login.PublicKey()
	if err != nil {
		return err
	}
	var admit login.Admit
	if s.nats != nil {
		s.room = newRoom(o.Connections, s.nats.Connections)
		admit = s.room.admit
	}
	s.stop, err = login.Serve(nc, s.keys.issuer, func(key string) (login.Identity, bool) {
		switch key {
		case operator:
			return login.Identity{Name: login.OperatorName, Role: login.Operator}, true
		case broker:
			return login.Identity{Name: login.BrokerName, Role: login.Broker}, true
		}
		select {
		case <-s.ready:
		case <-s.ended:
			return login.Identity{}, false
		}
		a, ok := s.Broker.Parts.Registry.Principal(performatives.Key(key))
		if ok && s.Broker.Gateway.Floods(a) {
			return login.Identity{}, false
		}
		inbox := api.InboxStreamOf(a, s.Broker.Parts.Store.Shards())
		return login.Identity{Name: a.Token(), Role: login.Principal, Inbox: inbox, Groups: s.Broker.Parts.Approvals.Groups(a)}, ok
	}, admit, o.Log)
	return err
}
