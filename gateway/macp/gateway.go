// Package macpgateway speaks MACP's gRPC for the proposal mode, so that MACP's clients
// negotiate in sessions of parley (docs/GATEWAYS.md).
//
//	g := macpgateway.New(macpgateway.Options{Service: service, Healthy: b.Healthy, Card: b.Card, Sender: b.MACPSender, Records: records})
//	go g.Serve(listener)
//	defer g.Close(ctx)
//
// A session in macp.mode.proposal.v1 is one in convergent/1. SessionStart is its invitation,
// and each other message one act, which carries MACP's own bytes in content.context. Senders
// are hosted agents. Payloads become acts and acts payloads, and refusals get MACP's codes.
package macpgateway

//go:generate go run ./gen

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Options say what is served.
type Options struct {
	Service *gateway.Service                              // under its Dev any bearer is its own sender
	Healthy func(context.Context) error                   // reports why the broker does not serve
	Card    func(performatives.Agent) (api.Card, bool)    // of a principal
	Sender  func(name string) (performatives.Agent, bool) // whom MACP knows by a name
	Records *store.Bucket                                 // the names of sessions, and policies
	TLS     *tls.Config                                   // nil is plain text
}

// Bounds of what a client may ask for.
const (
	maxMessage   = 1 << 20          // bytes on the wire; an envelope that is larger than a session's is refused by name
	maxCalls     = 100              // of one connection at a time
	maxAnonymous = 4                // of them without a good token whose requests are being read
	maxUnread    = 64 << 10         // bytes of a call that nobody reads
	firstFrame   = 30 * time.Second // within which a stream says what it is for

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
	anonymous map[string]int // calls without a token that are being read, by connection
}

// New makes a gateway.
func New(o Options) *Gateway {
	g := &Gateway{o: o, ending: make(chan struct{}), anonymous: map[string]int{}}
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
	g.register(grpc_health_v1.Health_ServiceDesc, &healthy{look: o.Healthy, ending: g.ending, watches: make(chan struct{}, maxWatches)})
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
