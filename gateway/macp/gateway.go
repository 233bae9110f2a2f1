// Package macpgateway speaks MACP's gRPC for the proposal mode, so that MACP's clients
// negotiate in sessions of parley (docs/MACP.md).
//
//	g := macpgateway.New(macpgateway.Options{Broker: b, Hosted: h, Custody: b.Custody(), Agents: b, Feeds: b, Records: records, Log: log})
//	go g.Serve(listener)
//	defer g.Close(ctx)
//
// A session in macp.mode.proposal.v1 is one in convergent/1. SessionStart is its invitation,
// and each other message one act, which carries MACP's own bytes in content.context. Senders
// are hosted agents, so the gateway says the acts for them, as HTTP does. No rule of the
// protocol lives here: payloads become acts and acts payloads, and refusals get MACP's codes.
package macpgateway

//go:generate go run ./gen

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/hosted"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// A Broker answers verbs for a principal that is authenticated. Refusals are *session.Refusal.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	Healthy(ctx context.Context) error
}

// Hosted says acts for hosted agents.
type Hosted interface {
	Say(ctx context.Context, as performatives.Agent, id performatives.SessionID, key string, said hosted.Said) (api.Acceptance, error)
	Before(ctx context.Context, as performatives.Agent, key string) (id performatives.SessionID, accepted bool, err error)
}

// Custody knows tokens.
type Custody interface {
	Admit(ctx context.Context, bearer string) (custody.Pass, error)
}

// Agents knows principals by their URIs and by their names in MACP.
type Agents interface {
	Card(a performatives.Agent) (api.Card, bool)
	MACPSender(name string) (performatives.Agent, bool)
}

// Feeds tell of what is stored, after it is.
type Feeds interface {
	WatchSession(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error)
}

// Records keep the names of sessions, and policies.
type Records interface {
	Get(ctx context.Context, key string) (store.Entry, error)
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Sync() error
}

// Options say what is served.
type Options struct {
	Broker  Broker
	Hosted  Hosted
	Custody Custody
	Agents  Agents
	Feeds   Feeds
	Records Records
	Dev     bool        // any bearer is its own sender
	TLS     *tls.Config // nil is plain text
	Log     *zap.Logger
}

// Bounds of what a client may ask for.
const (
	maxMessage    = 1 << 20  // bytes on the wire; an envelope that is larger than a session's is refused by name
	maxCalls      = 100      // of one connection at a time
	maxAnonymous  = 4        // of them without a good token whose requests are being read
	maxUnread     = 64 << 10 // bytes of a call that nobody reads
	maxStreams    = 1024     // of one caller
	maxAllStreams = 16384
	firstFrame    = 30 * time.Second // within which a stream says what it is for

	arrivalTimeout = 30 * time.Second // of the request of any other call
	callTimeout    = 30 * time.Second
	idleTimeout    = 5 * time.Minute // of a connection without calls
	pingEvery      = 30 * time.Second
	pingTimeout    = 20 * time.Second
	pingsAtLeast   = 5 * time.Second // between a client's pings
	headerTimeout  = 10 * time.Second
	maxHeader      = 32 << 10 // bytes
)

// A Gateway serves MACPRuntimeService.
type Gateway struct {
	pb.UnimplementedMACPRuntimeServiceServer

	o      Options
	server *grpc.Server
	ending chan struct{} // closed to end streams
	end    sync.Once

	mu        sync.Mutex
	streams   map[performatives.Agent]int
	open      int
	anonymous map[string]int // calls without a token that are being read, by connection
}

// New makes a gateway.
func New(o Options) *Gateway {
	g := &Gateway{o: o, ending: make(chan struct{}), streams: map[performatives.Agent]int{}, anonymous: map[string]int{}}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.StaticStreamWindowSize(maxUnread), grpc.StaticConnWindowSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(headerTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAtLeast, PermitWithoutStream: true}),
		grpc.InTapHandle(arriving), grpc.StreamInterceptor(g.streaming),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS.Clone())))
	}
	g.server = grpc.NewServer(options...)
	g.register(pb.MACPRuntimeService_ServiceDesc, g)
	g.register(grpc_health_v1.Health_ServiceDesc, &healthy{broker: o.Broker, ending: g.ending, watches: make(chan struct{}, maxWatches)})
	return g
}

// Serve serves a listener until Close.
func (g *Gateway) Serve(l net.Listener) error { return g.server.Serve(l) }

// Close ends all streams, whose readers resume at another broker, and waits for the calls
// in progress.
func (g *Gateway) Close(ctx context.Context) {
	g.end.Do(func() { close(g.ending) })
	stop := context.AfterFunc(ctx, g.server.Stop)
	defer stop()
	g.server.GracefulStop()
}

// Crash closes every connection at once.
func (g *Gateway) Crash() {
	g.end.Do(func() { close(g.ending) })
	g.server.Stop()
}

// enterStream counts a stream of a caller, until leave.
func (g *Gateway) enterStream(a performatives.Agent) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[a] >= maxStreams || g.open >= maxAllStreams {
		return nil, problem{rateLimited, "there are too many open streams: close some"}
	}
	g.streams[a]++
	g.open++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open--
		if g.streams[a]--; g.streams[a] == 0 {
			delete(g.streams, a)
		}
	}, nil
}
