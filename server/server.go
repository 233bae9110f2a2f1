// Package server runs parley in one process: an embedded NATS server or a
// connection to an external one, the login service, the broker, the HTTP
// listener and notifications. Start starts them in that order; Close stops them
// in reverse.
package server

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/escalation"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
)

// Options configure a Server. Data is required; the rest has defaults.
type Options struct {
	Data   string        // directory of the store and the keys
	Listen string        // NATS host:port; port -1 picks a free one
	HTTP   string        // HTTP host:port; "" disables HTTP
	Dev    bool          // no logins; loopback only
	Sync   time.Duration // fsync interval of the store; 0 fsyncs before each acceptance

	MACP string // host:port of MACP's gRPC; "" disables it

	Monitor string             // host:port of probes and metrics, plain HTTP without a login; "" disables it
	OTLP    telemetry.Exporter // of traces, metrics and the log

	HTTPConnections int            // open HTTP connections of one address; 0 is DefaultHTTPConnections, below zero no bound
	HTTPOrigins     []string       // of other sites whose pages may call the HTTP gateway
	HTTPURL         string         // at which others reach HTTP; "" is that of each request, and cards are signed on loopback only
	DIDHosts        []string       // whose DID documents an operator may register
	PrivateWebhooks bool           // webhooks that clients of A2A name, and agents elsewhere, may be at private addresses
	BinduAuth       bool           // who asks on Bindu's path needs a token
	OIDC            OIDC           // whose tokens MCP takes, besides the broker's own
	SignIn          *openid.Config // the OpenID provider that signs people in to the pages, whose callback is below HTTPURL; nil: their devices' keys do
	Embeddings      Embeddings     // that its answers go by, besides keywords
	HTTPProxies     []netip.Prefix // reverse proxies, whose X-Forwarded-For is believed

	TLS       TLS
	Websocket string // host:port of NATS over WebSocket, embedded server only; "" disables it

	SharedKeys bool // a key that signs may log in too, the broker's and those of principals without a login key

	Connections int // to the embedded NATS server, of one principal; 0 is DefaultConnections, below zero no bound

	NATS        string        // URL of an external NATS server; "" embeds one
	NATSOptions []nats.Option // how the broker logs in there; nil: as Config says, and the broker serves its logins
	NATSSeed    string        // a file with the seed of an nkey that logs in there instead
	NATSCreds   string        // a credentials file instead; if Nsc wrote it, the broker serves logins too
	Replicas    int           // replicas of each stream; more than 1 needs an external cluster
	Shards      int           // streams for transcripts, inboxes and the session list each, as when the store was made; 0 is 1
	Lost        []string      // streams that may be missing in the store, whatever they held

	LogOrigin string // name of the public log; "" is made of the broker's key
	LogResume string // after a restore: the newest checkpoint of the log that was published
	Witnesses ledger.Witnesses

	Policy  performatives.Policy
	Limits  limits.Limits  // per principal
	Archive archive.Policy // when finished sessions move to the archive
	Lag     time.Duration  // of timers and session rows behind transcripts; 0 is 2 s, below zero none
	// OpenRulings has the faces seal neither what hosted agents ESCALATE nor what people rule.
	OpenRulings bool
	Standby     *negotiator.Policy // of system agents that take parked turns; nil: there are none but those that cards name
	Claim       time.Duration      // of a turn, by --claim-timeout; 0 is 6 h
	InboxAge    time.Duration      // retention of inbox copies; 0 keeps the store's setting, initially 7 days
	Rules       *escalation.Rules  // who decides escalations, already checked; nil: every human who may decide
	Notify      *notify.Config     // who is notified of escalations, and how; nil: nobody
	Log         *zap.Logger
	Now         func() time.Time // the broker's clock; nil is time.Now
}

// A Server runs until it is closed.
type Server struct {
	Broker       *Broker
	ID           string // unique among the brokers that share the streams
	URL          string // where principals connect
	WebsocketURL string // the same over WebSocket; "" if disabled
	HTTPAddr     string
	MACPAddr     string
	MonitorAddr  string

	keys   keys
	mode   mode
	nats   *embedded.Server // nil with an external server
	lock   *os.File         // of the data directory; nil if it cannot be written
	web    *web
	probe  *monitor // nil without Options.Monitor and Options.OTLP
	export *telemetry.Export
	macp   *macpgateway.Gateway
	conns  ownConnections

	certificate *certificate // nil without TLS
	room        *room        // nil where an external server lets in
	addresses   []*addresses // of the listeners

	notifier *notify.Notifier
	standbys *background.Group // nil without Options.Standby
	outages  *background.Group
	stop     func()
	failed   chan error    // with room for one
	ready    chan struct{} // closed once the broker is open
	ended    chan struct{}
	ending   sync.Once
}

// Start starts a Server. The broker serves requests when Start returns.
func Start(ctx context.Context, o Options) (s *Server, err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	s = &Server{ID: nuid.Next(), failed: make(chan error, 1), outages: background.New(), ready: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			s.end()
			s = nil
		}
	}()
	o.Log = o.Log.With(zap.String("broker", s.ID))
	if o.Monitor != "" || o.OTLP.URL != "" {
		if s.probe, err = openMonitor(o, o.Log.Named("monitor")); err != nil {
			return s, err
		}
		s.MonitorAddr = s.probe.addr
	}
	if s.export, err = telemetry.Open(o.OTLP, s.probe.metrics(), api.Version, s.ID, o.Log); err != nil {
		return s, err
	}
	if o.Log, err = s.export.Log(o.Log); err != nil {
		return s, err
	}
	tlsConfig, certificate, err := o.TLS.server(o.Log)
	if err != nil {
		return s, err
	}
	s.certificate = certificate
	if err := o.listenable(); err != nil {
		return s, err
	}
	if s.lock, err = o.lock(); err != nil {
		return s, err
	}
	if err := finished(o.Data); err != nil {
		return s, err
	}
	if s.keys, err = openKeys(o.Data); err != nil {
		return s, err
	}
	if why := old(s.keys.since, time.Now()); why != "" {
		o.Log.Warn(why, zap.Time("since", s.keys.since))
	}
	for _, file := range exposed(o.Data) {
		o.Log.Warn("others on this machine can read a key: chmod 600 it, and replace it if they may have", zap.String("file", file))
	}
	if flags := o.plain(); len(flags) > 0 {
		o.Log.Warn("others can reach this broker in plain text: set --tls-cert, unless a proxy in front of it encrypts", zap.Strings("flags", flags))
	}
	if s.mode, err = s.keys.mode(o); err != nil {
		return s, err
	}
	if err := s.keys.apart(o); err != nil {
		return s, err
	}
	inside, err := s.connect(o, tlsConfig)
	if err != nil {
		return s, err
	}
	bulk, err := s.connectBroker(o, bulkName)
	if err != nil {
		return s, err
	}
	feeds, err := s.connectBroker(o, feedsName)
	if err != nil {
		return s, err
	}
	asked, err := s.connectBroker(o, askedName)
	if err != nil {
		return s, err
	}
	disconnect, suspected, err := s.openDisconnect(o)
	if err != nil {
		return s, err
	}
	signer, err := performatives.NewSigner(s.keys.broker)
	if err != nil {
		return s, err
	}
	reserved, err := s.keys.reserved()
	if err != nil {
		return s, err
	}
	if s.mode.servesLogins() { // the NATS server already listens; logins wait until the registry is loaded
		if err := s.openLogin(o); err != nil {
			return s, err
		}
	}
	var similar func(context.Context, discovery.Task, [][]discovery.Skill) ([]discovery.Similarity, error)
	if o.Embeddings.URL != "" {
		similar = bindugateway.NewEmbeddings(o.Embeddings.URL, o.Embeddings.Model, o.Embeddings.Key, o.Log).Similarity
	}
	if s.Broker, err = OpenBroker(ctx, BrokerOptions{
		Options: broker.Options{Signer: signer, Keys: s.keys.history, Dev: o.Dev, Alone: o.NATS == "", Policy: o.Policy, Limits: o.Limits, Lag: o.Lag, Metrics: s.probe.metrics(), Traces: s.export.Traces, Log: o.Log, Now: o.Now},
		ID:      s.ID, Conn: inside, Bulk: bulk, Feeds: feeds, Asked: asked, Replicas: o.Replicas, Shards: o.Shards, Lost: o.Lost, Durable: s.durable(o), Broken: s.broken(), SyncedAfter: s.syncedAfter(o),
		Escalations: o.Rules, Archive: o.Archive, ClaimTimeout: o.Claim, Standbys: o.Standby != nil, OpenRulings: o.OpenRulings, PrivateWebhooks: o.PrivateWebhooks || o.Dev, Similar: similar, Probe: probes(o.PrivateWebhooks || o.Dev), InboxAge: o.InboxAge,
		Failed: s.fail, Disconnect: disconnect, Silent: suspected, Reconnect: func() { s.conns.reconnect(o.Log) },
		Credentials: s.mode.credentials(s.keys), Reserved: reserved, SharedKeys: o.SharedKeys, KeySince: s.keys.since, Secret: s.keys.secret, DIDDocument: didDocuments(o.DIDHosts),
		LogOrigin: o.LogOrigin, LogResume: o.LogResume, Witnesses: o.Witnesses, Published: checkpointFile{filepath.Join(o.Data, CheckpointFile)},
	}); err != nil {
		return s, err
	}
	if n := s.Broker.Parts.Registry.NoLogin(); len(n) > 0 && s.mode.servesLogins() {
		o.Log.Warn("principals have a key that signs and none that logs in; before there were login keys, the one did both: parley agent rotate gives both anew",
			zap.Int("principals", len(n)), zap.Reflect("first", n[:min(len(n), 10)]), zap.Bool("sharedKeys", o.SharedKeys))
	}
	close(s.ready)
	s.Broker.warnOfApprovers(o.Rules)
	if s.notifier, err = s.openNotify(ctx, o.Notify); err != nil {
		return s, err
	}
	if o.Standby != nil {
		if err := s.openStandbys(ctx, o); err != nil {
			return s, err
		}
	}
	if o.HTTP != "" {
		if s.web, err = openWeb(o, tlsConfig, o.Log.Named("http"), s); err != nil {
			return s, err
		}
		s.HTTPAddr = s.web.addr
	}
	if o.MACP != "" {
		if err := s.openMACP(ctx, o, tlsConfig); err != nil {
			return s, err
		}
	}
	s.probe.begin(s)
	s.outages.Go(func(ctx context.Context) { logOutages(ctx, s.healthy, o.Log) })
	return s, nil
}

// MustStop has why the server must be closed, once that is so: the broker's key was replaced.
func (s *Server) MustStop() <-chan error { return s.failed }

func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Operator returns the operator's key, which the server generated.
func (s *Server) Operator() nkeys.KeyPair { return s.keys.operator }

// ServesLogins reports whether the NATS server asks this process to authorize logins.
func (s *Server) ServesLogins() bool { return s.mode.servesLogins() }

// Close stops accepting requests, finishes those that were accepted, and stops the NATS server.
func (s *Server) Close(ctx context.Context) error {
	s.probe.stop()
	if s.macp != nil {
		s.macp.Close(ctx)
	}
	if s.web != nil {
		s.web.close(ctx)
	}
	s.outages.Close()
	s.closeNotify()
	s.closeStandbys()
	err := s.Broker.Close(ctx)
	s.end()
	return err
}

// Crash stops the embedded NATS server under the running broker, for recovery tests.
func (s *Server) Crash() {
	s.probe.stop()
	if s.macp != nil {
		s.macp.Crash()
	}
	if s.web != nil {
		s.web.crash()
	}
	s.outages.Close()
	s.closeNotify()
	s.closeStandbys()
	s.nats.Shutdown()
	s.nats = nil
	s.conns.close() // or the broker waits for replies
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Broker.Close(ctx) //nolint:errcheck // the connections are closed
	s.end()
}

func (s *Server) end() {
	s.ending.Do(func() { close(s.ended) })
	if s.stop != nil {
		s.stop()
	}
	s.conns.close()
	if s.nats != nil {
		s.nats.Shutdown()
	}
	if s.lock != nil {
		unlock(s.lock)
	}
	s.probe.close()
	s.export.Close()
}
