// Package embedded runs the NATS server that parley brings along, inside this process.
//
//	server, err := embedded.Start(embedded.Options{
//		StoreDir: "parley-data", Listen: "127.0.0.1:4222",
//		Broker: brokerKey, Callout: calloutKey, CalloutIssuer: issuerKey, Log: log,
//	})
//	defer server.Shutdown()
//	nc, err := nats.Connect(server.ClientURL(), server.InProcess(), nats.Nkey(brokerKey, sign))
//
// Invariants:
//   - JetStream is in the account ASP, in which only the broker has a user. All others reach
//     it through the service and stream imports of accounts.go and nothing else, in
//     development too (PROTOCOL.md §2).
//   - What JetStream acknowledges has been fsynced, unless SyncInterval says otherwise.
//   - A server without login listens on a loopback address only (PROTOCOL.md §10).
package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/login"
)

const (
	// An envelope has at most 256 KiB; one above that must reach the broker, which answers
	// too_large, so the server's own limit is wider.
	maxPayload = 1 << 20 // bytes
	// Every principal has a durable consumer on its inbox; the server's default is 1,000.
	maxConsumers = 1 << 20
	// Atomic batches in flight; the server's default for a stream is 50.
	maxBatches = 1_000
	// A login waits for the callout's answer.
	loginTimeout = 5 * time.Second
	readyTimeout = 10 * time.Second
)

// Options says what server to start. StoreDir, Listen and the broker's key are always needed,
// those of the login service unless Dev.
type Options struct {
	StoreDir string // JetStream keeps its files in a folder "jetstream" below
	Listen   string // host:port for clients; port 0 or -1 takes a free one
	Dev      bool   // no login: every client is the user "dev", whatever it presents

	// TLS is what clients have to speak; nil is none. Connections in process go without.
	TLS *tls.Config
	// Websocket is the host:port for clients that speak over WebSocket, such as browsers; ""
	// is none. With Dev a page of another origin is turned away: any could act as anyone.
	Websocket string

	// SyncInterval is how often streams are fsynced. Zero, the default, is before each
	// acknowledgement; with 1s a power failure can lose the last second.
	SyncInterval time.Duration

	Broker        string      // public nkey ("U…") of the broker, the one user of account ASP
	Callout       string      // public nkey ("U…") of the login service, in account AUTH
	CalloutIssuer string      // public account key ("A…") that signs logins
	Log           *zap.Logger // nil: silent
}

// Server is a running NATS server.
type Server struct {
	nats      *server.Server
	websocket bool

	mu    sync.Mutex
	files map[string]*blocks // by stream
}

// Start returns when clients can connect.
func Start(o Options) (*Server, error) {
	opts, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	log := &logger{}
	if log.out = o.Log; log.out == nil {
		log.out = zap.NewNop()
	}
	var dev *devLogin
	if o.Dev {
		dev = &devLogin{broker: o.Broker}
		opts.CustomClientAuthentication = dev
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	ns.SetLoggerV2(log, false, false, false)
	s := &Server{nats: ns, websocket: o.Websocket != "", files: map[string]*blocks{}}
	if dev != nil {
		if err := dev.resolve(ns); err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
	}
	ns.Start()
	if err := s.ready(log); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return s, nil
}

// ready turns JetStream on in the broker's account, which reads its streams back from disk.
func (s *Server) ready(log *logger) error {
	if err := log.fatal.Load(); err != nil {
		return *err
	}
	if !s.nats.ReadyForConnections(readyTimeout) {
		return fmt.Errorf("not ready after %s", readyTimeout)
	}
	asp, err := s.nats.LookupAccount(login.BrokerAccount)
	if err != nil {
		return err
	}
	if err := asp.EnableJetStream(nil, nil); err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	return nil
}

// ClientURL is where clients connect to; its scheme is "tls" where they have to speak it.
func (s *Server) ClientURL() string { return s.nats.ClientURL() }

// WebsocketURL is where clients connect to over WebSocket, "" if they cannot.
func (s *Server) WebsocketURL() string {
	if !s.websocket {
		return ""
	}
	return s.nats.WebsocketURL()
}

// InProcess makes a connection run inside the process, without a socket. The login is the
// same as over one.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.nats) }

// Shutdown closes all connections and the stores, and returns when that is done.
func (s *Server) Shutdown() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.close()
	}
}

func (o Options) server() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("option StoreDir is empty")
	}
	host, port, err := o.address("Listen", o.Listen)
	if err != nil {
		return nil, err
	}
	may := production
	if o.Dev {
		may = development
	}
	if err := o.keys().check(!o.Dev); err != nil {
		return nil, err
	}
	accounts, err := newAccounts(may)
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	opts := &server.Options{
		ServerName:             "parley",
		Host:                   host,
		Port:                   port,
		NoSigs:                 true,
		MaxPayload:             maxPayload,
		AuthTimeout:            loginTimeout.Seconds(),
		Accounts:               accounts.all(),
		SystemAccount:          login.SystemAccount,
		Nkeys:                  []*server.NkeyUser{{Nkey: o.Broker, Account: accounts[login.BrokerAccount]}},
		JetStream:              true,
		StoreDir:               o.StoreDir,
		SyncAlways:             o.SyncInterval == 0,
		SyncInterval:           o.SyncInterval,
		DisableJetStreamBanner: true,
	}
	if o.TLS != nil {
		opts.TLSConfig, opts.TLSTimeout = o.TLS, loginTimeout.Seconds()
	}
	if err := o.addWebsocket(opts); err != nil {
		return nil, err
	}
	opts.JetStreamLimits.DefaultMaxConsumers = maxConsumers
	opts.JetStreamLimits.MaxBatchInflightPerStream = maxBatches
	opts.JetStreamLimits.MaxBatchInflightTotal = maxBatches
	if o.Dev {
		// Makes the server announce that it asks for no credentials.
		opts.Users = []*server.User{devUser(accounts[login.PrincipalsAccount])}
		opts.NoAuthUser = devName
		opts.AlwaysEnableNonce = true
		return opts, nil
	}
	opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: o.Callout, Account: accounts[login.CalloutAccount]})
	opts.AuthCallout = &server.AuthCallout{
		Issuer:    o.CalloutIssuer,
		Account:   login.CalloutAccount,
		AuthUsers: []string{o.Broker, o.Callout},
	}
	return opts, nil
}

func (o Options) keys() Keys {
	return Keys{Broker: o.Broker, Callout: o.Callout, Issuer: o.CalloutIssuer}
}

func (o Options) addWebsocket(opts *server.Options) (err error) {
	if o.Websocket == "" {
		return nil
	}
	ws := &opts.Websocket
	ws.Host, ws.Port, err = o.address("Websocket", o.Websocket)
	ws.TLSConfig, ws.NoTLS, ws.SameOrigin = o.TLS, o.TLS == nil, o.Dev
	return err
}

func (o Options) address(option, hostport string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", 0, fmt.Errorf("option %s: %w", option, err)
	}
	if port, err = strconv.Atoi(p); err != nil || port < -1 || port > 65535 {
		return "", 0, fmt.Errorf("option %s: %q is not a port", option, p)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if o.Dev && !loopback(host) {
		return "", 0, fmt.Errorf("%w: %s", ErrNotLoopback, hostport)
	}
	return host, port, nil
}
