// Package embedded runs a NATS server inside this process.
//
//	server, err := embedded.Start(embedded.Options{
//		StoreDir: "parley-data", Listen: "127.0.0.1:4222",
//		Broker: brokerKey, Callout: calloutKey, Authority: authority, Log: log,
//	})
//	defer server.Shutdown()
//	own, err := authority.Own(login.BrokerAccount, "broker", brokerKey)
//	nc, err := nats.Connect(server.ClientURL(), server.InProcess(), nats.UserJWT(own, sign))
//
// With logins the server is in operator mode, so that principals can log in with a bare nkey or
// a .creds file. A server in config mode ignores the JWT of a .creds file.
//
// Invariants:
//   - JetStream is in the account ASP, of which the broker is the only user. All others reach
//     it only through the imports in accounts.go, in development too (PROTOCOL.md §2).
//   - JetStream fsyncs before it acknowledges, unless SyncInterval is set. With
//     [Server.Durable] the broker does a group commit instead.
//   - A server without logins listens on a loopback address only (PROTOCOL.md §10).
package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/server/login"
)

const (
	// MaxPayload bounds a message: an envelope has at most 256 KiB. A larger one must still reach the broker, which answers
	// too_large, so the server's limit is higher.
	MaxPayload = 1 << 20 // bytes
	// Every principal has a durable consumer on its inbox; the server's default is 1,000.
	maxConsumers = 1 << 20
	// Atomic batches in flight; the server's default for a stream is 50.
	maxBatches = 1_000
	// The disk is the limit. By default it is three quarters of what was free at the start, and acts are refused from there on.
	maxStore = 1 << 62
	// A client subscribes to its reply inbox, and perhaps to a few subjects below it.
	maxSubscriptions = 256
	// Bytes that wait for one slow connection. The broker's own is one of them: with less, a
	// principal's flood on a busy machine ended it, and others were answered "no responders".
	maxPending = 64 << 20
	// A login waits for the callout's answer.
	loginTimeout = 5 * time.Second
	readyTimeout = time.Minute // it reads its streams first
)

// Options configure the server. StoreDir, Listen, Authority and Broker are required, and Callout
// unless Dev is set.
type Options struct {
	StoreDir string // JetStream's files are in its folder "jetstream"
	Listen   string // host:port for clients; port 0 or -1 selects a free one
	Dev      bool   // no login: every client is the user "dev", whatever it presents

	// TLS is required of clients unless it is nil. In-process connections do without.
	TLS *tls.Config
	// Websocket is the host:port for WebSocket clients such as browsers; "" is none. With Dev,
	// pages of other origins and of other names are refused, because they could act as anyone.
	Websocket string

	// SyncInterval is how often streams are fsynced. Zero means before each
	// acknowledgement. With 1s a power failure can lose the last second.
	SyncInterval time.Duration

	Shards int // of the store (store.Options); 0 is 1
	Unread int // bytes that wait for all principals at most; 0 is 256 MiB
	Sent   int // messages of a principal in a second at most; 0 is 100,000
	// Flooded is told the name of who has sent more, before its connections are closed; nil is not.
	Flooded func(name string)

	Broker    string           // public nkey ("U…") of the broker, the only user of account ASP
	Callout   string           // public nkey ("U…") of the login service, in account AUTH
	Authority *login.Authority // signs accounts and users
	Log       *zap.Logger      // nil: silent

	Fsynced func(took time.Duration) // called after each fsync that Durable made; nil is not
}

// Server is a running NATS server.
type Server struct {
	nats      *server.Server
	asp       string // account
	dir       string // of JetStream's files
	websocket bool

	fsynced func(time.Duration)
	log     *logger
	work    *background.Group

	mu    sync.Mutex
	files map[string]*blocks // by stream
}

// Start starts the server and returns when clients can connect.
func Start(o Options) (*Server, error) {
	opts, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	log := newLogger(o.Log)
	if err := o.adopt(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
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
	s := &Server{nats: ns, dir: filepath.Join(o.StoreDir, "jetstream"), asp: o.Authority.Account(login.BrokerAccount), websocket: o.Websocket != "", fsynced: o.Fsynced, log: log, work: background.New(), files: map[string]*blocks{}}
	if dev != nil {
		if err := dev.resolve(ns, o.Authority, o.Shards); err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
	}
	// JetStream recovers the streams of accounts that the server knows at the start in parallel, and those
	// of other accounts one by one.
	if _, err := ns.LookupAccount(s.asp); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	ns.Start()
	if err := s.ready(o.Dev); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s.work.Go(func(ctx context.Context) {
		s.watch(ctx, watch{
			account: o.Authority.Account(login.PrincipalsAccount), unread: cmp.Or(o.Unread, maxUnread),
			most: int64(cmp.Or(o.Sent, maxSent)), flooded: o.Flooded,
		})
	})
	return s, nil
}

// ready turns JetStream on in the broker's account, which reads its streams back from disk, side by
// side. In operator mode the account says so itself, and the server has done it.
func (s *Server) ready(dev bool) error {
	if err := s.log.fatal.Load(); err != nil {
		return *err
	}
	if !s.nats.ReadyForConnections(readyTimeout) {
		return fmt.Errorf("not ready after %s", readyTimeout)
	}
	asp, err := s.nats.LookupAccount(s.asp)
	if err != nil {
		return err
	}
	if dev {
		tasks := make(chan func())
		defer close(tasks)
		for range runtime.GOMAXPROCS(0) {
			go func() {
				for read := range tasks {
					read()
				}
			}()
		}
		err = asp.EnableJetStream(nil, tasks)
	}
	if err != nil || !asp.JetStreamEnabled() {
		return fmt.Errorf("JetStream is not enabled: %w", err)
	}
	return nil
}

// adopt renames an existing store to the name of the broker's account. JetStream names the folder
// after the account, and that name changes with the issuer's key.
func (o Options) adopt() error {
	dir := filepath.Join(o.StoreDir, server.JetStreamStoreDir)
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if name := o.Authority.Account(login.BrokerAccount); err == nil && len(found) == 1 && found[0].Name() != name {
		err = os.Rename(filepath.Join(dir, found[0].Name()), filepath.Join(dir, name))
	}
	return err
}

// ClientURL is the URL for clients. Its scheme is "tls" if TLS is required.
func (s *Server) ClientURL() string { return s.nats.ClientURL() }

// InProcess makes a connection within the process, without a socket. It must log in all the same.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.nats) }

// lastLogins is how long a client that was let in last has to begin its login.
const lastLogins = 250 * time.Millisecond

// Shutdown closes all connections and the stores, and returns when they are closed. Lame duck mode closes the
// listeners first: Shutdown of nats-server 2.15.3 ends its system account before them, and a client that begins a
// login meanwhile has its answer awaited for seconds. What was written last is fsynced, which nats-server leaves to
// the operating system: the next start takes the end for a clean one, and looks for nothing that is missing.
func (s *Server) Shutdown() {
	s.work.Close()
	s.nats.LameDuckShutdown()
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	streams, err := filepath.Glob(filepath.Join(s.dir, "*", "streams", "*"))
	for _, stream := range streams {
		if fault := s.Durable(filepath.Base(stream), 0); !errors.Is(fault, os.ErrClosed) {
			err = errors.Join(err, fault)
		}
	}
	if err != nil {
		s.log.Errorf("what was written last may not survive a loss of power: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.close()
	}
}

// Broken is why the server stores nothing more until it is started again, also once its disk has room; nil if it does.
func (s *Server) Broken() error {
	if why := s.log.broken.Load(); why != nil {
		return *why
	}
	if !s.nats.JetStreamEnabled() {
		return errors.New("the server has disabled JetStream")
	}
	return nil
}

func (o Options) server() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("option StoreDir is empty")
	}
	if o.Authority == nil {
		return nil, errors.New("option Authority is missing")
	}
	host, port, err := o.address("Listen", o.Listen)
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName:             "parley",
		Host:                   host,
		Port:                   port,
		NoSigs:                 true,
		MaxPayload:             MaxPayload,
		MaxPending:             maxPending,
		NoFastProducerStall:    true, // of whom the broker is one: who does not read is cut off, and nobody waits for it
		AuthTimeout:            loginTimeout.Seconds(),
		SystemAccount:          o.Authority.Account(login.SystemAccount),
		JetStream:              true,
		StoreDir:               o.StoreDir,
		SyncAlways:             o.SyncInterval == 0,
		SyncInterval:           o.SyncInterval,
		JetStreamMaxStore:      maxStore,
		DisableJetStreamBanner: true,
		LameDuckGracePeriod:    lastLogins,
		LameDuckDuration:       lastLogins + 1, // clients are closed at once
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
		return opts, o.addDevelopment(opts)
	}
	return opts, o.addOperator(opts)
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

// Keys are the public keys that a server needs. The seeds stay with the broker.
type Keys struct {
	Broker  string // user ("U…"), the only user of account ASP
	Callout string // user ("U…") of the login service, in account AUTH
	Issuer  string // account key ("A…") that signs the replies to logins
	System  string // user ("U…") that disconnects removed principals, for external servers
}

// check checks the keys that a server with logins needs.
func (k Keys) check() error {
	switch {
	case !nkeys.IsValidPublicUserKey(k.Broker):
		return errors.New("the broker's key is not a user nkey")
	case !nkeys.IsValidPublicUserKey(k.Callout) || k.Callout == k.Broker:
		return errors.New("the login service's key is not a user nkey of its own")
	case !nkeys.IsValidPublicAccountKey(k.Issuer):
		return errors.New("the login service's issuer is not an account nkey")
	}
	return nil
}
