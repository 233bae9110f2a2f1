package macpgateway_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pbhealth "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const bearer = "parley_secret"

// broken is a broker whose tokens panic with what they are given.
func broken(log *zap.Logger) *gateway.Service {
	return &gateway.Service{Log: log, Tokens: func(_ context.Context, bearer string) (custody.Pass, error) { panic(bearer) }}
}

// tokens is a broker that has these tokens and no others.
func tokens(known map[string]custody.Pass) macpgateway.Options {
	s := &gateway.Service{Log: zap.NewNop(), Tokens: func(_ context.Context, bearer string) (custody.Pass, error) {
		pass, has := known[bearer]
		if !has {
			return pass, custody.ErrToken
		}
		return pass, nil
	}}
	return macpgateway.Options{
		Service: s, Healthy: func(context.Context) error { return nil },
		Card: func(performatives.Agent) (c api.Card, known bool) { return c, false },
	}
}

// serve serves a gateway in memory, in a bubble of synctest, and has a client use it.
func serve(t *testing.T, o macpgateway.Options, use func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(64 << 10)
		g := macpgateway.New(o)
		served := make(chan error, 1)
		go func() { served <- g.Serve(l) }()
		conn, err := grpc.NewClient("passthrough:///macp", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		testkit.Must(t, err)
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+bearer), 5*time.Minute)
		use(ctx, g, conn)
		cancel()
		conn.Close()
		g.Crash()
		<-served
	})
}

// A call that panics is answered INTERNAL, is logged without secrets, and takes no other call with it.
func TestPanic(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.ErrorLevel)
	serve(t, macpgateway.Options{Service: broken(zap.New(core))}, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		c := pb.NewMACPRuntimeServiceClient(conn)
		for range 2 {
			var trailer metadata.MD
			_, err := c.ListModes(ctx, &pb.ListModesRequest{}, grpc.Trailer(&trailer))
			if status.Code(err) != codes.Internal || strings.Join(trailer.Get("macp-error-code"), "") != "INTERNAL_ERROR" {
				t.Errorf("a call that panics is answered %v, %v", err, trailer)
			}
			s, err := c.StreamSession(ctx)
			testkit.Must(t, err)
			if _, err := s.Recv(); status.Code(err) != codes.Internal {
				t.Errorf("a stream that panics is answered %v", err)
			}
		}
	})
	if logged.Len() != 4 {
		t.Errorf("4 panics are logged %d times", logged.Len())
	}
	for _, e := range logged.All() {
		for _, f := range e.Context {
			if strings.Contains(f.String, bearer) {
				t.Errorf("%s has the bearer: %s", f.Key, f.String)
			}
		}
	}
}

// What the gateway answers by itself, and a frame that sends nothing, are charged to the caller.
func TestReadsAreCharged(t *testing.T) {
	t.Parallel()
	o := tokens(map[string]custody.Pass{bearer: {Agent: "agent://acme.com/one"}})
	var charged atomic.Int64
	o.Service.Charge = func(_ performatives.Agent, requests int) error {
		if charged.Add(int64(requests)) > 4 {
			return session.Refuse(session.RateLimited, "too many requests")
		}
		return nil
	}
	serve(t, o, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		c := pb.NewMACPRuntimeServiceClient(conn)
		for range 2 {
			_, err := c.ListModes(ctx, &pb.ListModesRequest{})
			testkit.Must(t, err)
		}
		s, err := c.StreamSession(ctx)
		testkit.Must(t, err)
		for range 2 {
			testkit.Must(t, s.Send(&pb.StreamSessionRequest{}))
			_, err := s.Recv() // what is wrong with it
			testkit.Must(t, err)
		}
		testkit.Must(t, s.Send(&pb.StreamSessionRequest{}))
		if _, err := s.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a frame too many is answered %v", err)
		}
		if _, err := c.ListModes(ctx, &pb.ListModesRequest{}); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a call too many is answered %v", err)
		}
	})
}

// A stream beyond the caller's bound is refused, and so is every call of a caller who owes something;
// what others and nobody in particular ask is answered.
func TestAccounts(t *testing.T) {
	t.Parallel()
	const caller, other = performatives.Agent("agent://acme.com/one"), performatives.Agent("agent://widgets.co/other")
	o := tokens(map[string]custody.Pass{bearer: {Agent: caller}, "parley_other": {Agent: other}})
	accounts := limits.NewAccounts(limits.Limits{Streams: 1, BytesOut: 1000}.WithDefaults(), time.Now)
	o.Service.Accounts = accounts
	o.Service.Charge = func(a performatives.Agent, requests int) error { return accounts.Of(a).Admit(requests, 0) }
	serve(t, o, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		c := pb.NewMACPRuntimeServiceClient(conn)
		leave, err := accounts.Of(caller).Hold(limits.Streams, 1)
		testkit.Must(t, err)
		s, err := c.StreamSession(ctx)
		testkit.Must(t, err)
		if _, err := s.Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "open streams") {
			t.Errorf("a stream too many is answered %v", err)
		}
		leave()
		answered := 0
		for ; answered < 1000; answered++ {
			var trailer metadata.MD
			if _, err = c.ListModes(ctx, &pb.ListModesRequest{}, grpc.Trailer(&trailer)); err != nil {
				if status.Code(err) != codes.ResourceExhausted || strings.Join(trailer.Get("macp-error-code"), "") != "RATE_LIMITED" {
					t.Errorf("who owes is answered %v, %v", err, trailer)
				}
				break
			}
		}
		if answered == 0 || answered > 10 {
			t.Errorf("it is refused after %d answers, of 1,000 bytes together", answered)
		}
		if s, err = c.StreamSession(ctx); err == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a stream of one who owes is answered %v", err)
		}
		if _, err := c.ListModes(metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer parley_other")), &pb.ListModesRequest{}); err != nil {
			t.Errorf("another caller: %v", err)
		}
		if _, err := pbhealth.NewHealthClient(conn).Check(metadata.NewOutgoingContext(ctx, nil), &pbhealth.HealthCheckRequest{}); err != nil {
			t.Errorf("a health check: %v", err)
		}
	})
}

// A request that does not arrive ends; a stream of which all has arrived goes on.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	serve(t, tokens(nil), func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
		watch, err := pbhealth.NewHealthClient(conn).Watch(ctx, &pbhealth.HealthCheckRequest{})
		testkit.Must(t, err)
		_, err = watch.Recv()
		testkit.Must(t, err)
		for _, method := range []string{pb.MACPRuntimeService_Send_FullMethodName, pbhealth.Health_Check_FullMethodName, pbhealth.Health_Watch_FullMethodName} {
			slow, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, method)
			testkit.Must(t, err)
			if err := slow.RecvMsg(&pb.SendResponse{}); status.Code(err) != codes.Canceled || ctx.Err() != nil {
				t.Errorf("%s without a request ends with %v", method, err)
			}
		}
		g.Close(ctx)
		if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("the watch of before ends with %v", err)
		}
	})
}

// An RPC of MACP that the gateway does not serve is unimplemented, whoever calls it.
func TestUnserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	for _, rpc := range []string{"GetManifest", "SuspendSession", "WatchSignals"} {
		for _, ctx := range []context.Context{w.Ctx, w.as("a")} {
			err := w.conn.Invoke(ctx, "/macp.v1.MACPRuntimeService/"+rpc, &pb.GetSessionRequest{}, &pb.GetSessionResponse{})
			if status.Code(err) != codes.Unimplemented {
				t.Errorf("%s: %v", rpc, err)
			}
		}
	}
}

// Of a connection, few calls without a good token are read at a time, so that outsiders fill no
// memory; one with a token waits for none of them.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	serve(t, tokens(map[string]custody.Pass{bearer: {Agent: buyer}}), func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		outsider := metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer parley_forged"))
		c := pb.NewMACPRuntimeServiceClient(conn)
		initialize := &pb.InitializeRequest{SupportedProtocolVersions: []string{"1.0"}}
		var late []grpc.ClientStream
		for _, method := range []string{
			pb.MACPRuntimeService_Send_FullMethodName, pbhealth.Health_Check_FullMethodName, pbhealth.Health_Watch_FullMethodName, pb.MACPRuntimeService_Initialize_FullMethodName,
		} {
			slow, err := conn.NewStream(outsider, &grpc.StreamDesc{ClientStreams: true}, method)
			testkit.Must(t, err)
			late = append(late, slow)
		}
		synctest.Wait()
		var trailer metadata.MD
		if _, err := c.Initialize(outsider, initialize, grpc.Trailer(&trailer)); failed(err, trailer) != "ResourceExhausted RATE_LIMITED" {
			t.Errorf("one too many gets %v", err)
		}
		if _, err := c.ListModes(ctx, &pb.ListModesRequest{}); err != nil {
			t.Errorf("who has a token gets %v", err)
		}
		for _, slow := range late {
			if err := slow.RecvMsg(&pb.SendResponse{}); status.Code(err) != codes.Canceled {
				t.Errorf("a request that does not arrive ends with %v", err)
			}
		}
		if _, err := c.Initialize(outsider, initialize); err != nil {
			t.Errorf("after them one gets %v", err)
		}
	})
}

// A token that expires or is removed ends the streams that it opened.
func TestTokenEndsStream(t *testing.T) {
	t.Parallel()
	known := map[string]custody.Pass{}
	serve(t, tokens(known), func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		const left = 20 * time.Second
		c, began, removed := pb.NewMACPRuntimeServiceClient(conn), time.Now(), make(chan struct{})
		for why, pass := range map[string]custody.Pass{
			"expires": {Agent: buyer, Expires: began.Add(left)}, "is removed": {Agent: buyer, Removed: removed},
		} {
			known[bearer] = pass
			s, err := c.StreamSession(ctx)
			testkit.Must(t, err)
			synctest.Wait()
			if pass.Removed != nil {
				close(removed)
			}
			if _, err := s.Recv(); failed(err, s.Trailer()) != "Unauthenticated UNAUTHENTICATED" {
				t.Errorf("the stream of a token that %s ends with %v", why, err)
			}
		}
		if passed := time.Since(began); passed != left {
			t.Errorf("both end after %s, want %s", passed, left)
		}
	})
}

// The health of the broker is the service's. Few watch it, and they hear when it ends.
func TestHealth(t *testing.T) {
	t.Parallel()
	for want, err := range map[pbhealth.HealthCheckResponse_ServingStatus]error{
		pbhealth.HealthCheckResponse_SERVING: nil, pbhealth.HealthCheckResponse_NOT_SERVING: errors.New("the disk is full"),
	} {
		o := tokens(nil)
		o.Healthy = func(context.Context) error { return err }
		serve(t, o, func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
			c := pbhealth.NewHealthClient(conn)
			for _, service := range []string{"", "macp.v1.MACPRuntimeService"} {
				got, err := c.Check(ctx, &pbhealth.HealthCheckRequest{Service: service})
				testkit.Must(t, err)
				if got.GetStatus() != want {
					t.Errorf("%q is %s, want %s", service, got.GetStatus(), want)
				}
			}
			if _, err := c.Check(ctx, &pbhealth.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
				t.Errorf("another service: %v", err)
			}
			watch, err := c.Watch(ctx, &pbhealth.HealthCheckRequest{})
			testkit.Must(t, err)
			got, err := watch.Recv()
			testkit.Must(t, err)
			if got.GetStatus() != want {
				t.Errorf("who watches gets %s, want %s", got.GetStatus(), want)
			}
			g.Close(ctx)
			if _, err := watch.Recv(); status.Code(err) != codes.Unavailable || ctx.Err() != nil {
				t.Errorf("a watch of a broker that stops ends with %v", err)
			}
		})
	}
}
