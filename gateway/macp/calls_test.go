package macpgateway_test

import (
	"context"
	"errors"
	"net"
	"strings"
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
	"github.com/parley-asp/parley/custody"
	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
)

const bearer = "parley_secret"

// broken panics with what it is given, a Custody, and is a Broker that is not healthy.
type broken struct {
	macpgateway.Broker
	healthy error
}

func (broken) Admit(_ context.Context, bearer string) (custody.Pass, error) { panic(bearer) }

// empty is a Custody without tokens, but for those in it.
type empty map[string]custody.Pass

func (e empty) Admit(_ context.Context, bearer string) (custody.Pass, error) {
	pass, has := e[bearer]
	if !has {
		return pass, custody.ErrToken
	}
	return pass, nil
}

// nobody has a card.
type nobody struct{ macpgateway.Agents }

func (nobody) Card(performatives.Agent) (c api.Card, known bool) { return c, false }

func (b broken) Healthy(context.Context) error { return b.healthy }

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
	serve(t, macpgateway.Options{Broker: broken{}, Custody: broken{}, Log: zap.New(core)}, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
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

// A request that does not arrive ends; a stream of which all has arrived goes on.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	serve(t, macpgateway.Options{Broker: broken{}, Custody: empty{}, Agents: nobody{}, Log: zap.NewNop()}, func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
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

// Of a connection, few calls without a good token are read at a time, so that strangers fill no
// memory; one with a token waits for none of them.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	tokens := empty{bearer: {Agent: buyer}}
	serve(t, macpgateway.Options{Broker: broken{}, Custody: tokens, Agents: nobody{}, Log: zap.NewNop()}, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		stranger := metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer parley_forged"))
		c := pb.NewMACPRuntimeServiceClient(conn)
		initialize := &pb.InitializeRequest{SupportedProtocolVersions: []string{"1.0"}}
		var late []grpc.ClientStream
		for _, method := range []string{
			pb.MACPRuntimeService_Send_FullMethodName, pbhealth.Health_Check_FullMethodName, pbhealth.Health_Watch_FullMethodName, pb.MACPRuntimeService_Initialize_FullMethodName,
		} {
			slow, err := conn.NewStream(stranger, &grpc.StreamDesc{ClientStreams: true}, method)
			testkit.Must(t, err)
			late = append(late, slow)
		}
		synctest.Wait()
		var trailer metadata.MD
		if _, err := c.Initialize(stranger, initialize, grpc.Trailer(&trailer)); failed(err, trailer) != "ResourceExhausted RATE_LIMITED" {
			t.Errorf("one too many hears %v", err)
		}
		if _, err := c.ListModes(ctx, &pb.ListModesRequest{}); err != nil {
			t.Errorf("who has a token hears %v", err)
		}
		for _, slow := range late {
			if err := slow.RecvMsg(&pb.SendResponse{}); status.Code(err) != codes.Canceled {
				t.Errorf("a request that does not arrive ends with %v", err)
			}
		}
		if _, err := c.Initialize(stranger, initialize); err != nil {
			t.Errorf("after them one hears %v", err)
		}
	})
}

// A token that expires or is removed ends the streams that it opened.
func TestTokenEndsStream(t *testing.T) {
	t.Parallel()
	tokens := empty{}
	serve(t, macpgateway.Options{Broker: broken{}, Custody: tokens, Agents: nobody{}, Log: zap.NewNop()}, func(ctx context.Context, _ *macpgateway.Gateway, conn *grpc.ClientConn) {
		const left = 20 * time.Second
		c, began, removed := pb.NewMACPRuntimeServiceClient(conn), time.Now(), make(chan struct{})
		for why, pass := range map[string]custody.Pass{
			"expires": {Agent: buyer, Expires: began.Add(left)}, "is removed": {Agent: buyer, Removed: removed},
		} {
			tokens[bearer] = pass
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
		serve(t, macpgateway.Options{Broker: broken{healthy: err}, Custody: empty{}, Agents: nobody{}, Log: zap.NewNop()}, func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
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
				t.Errorf("who watches hears %s, want %s", got.GetStatus(), want)
			}
			g.Close(ctx)
			if _, err := watch.Recv(); status.Code(err) != codes.Unavailable || ctx.Err() != nil {
				t.Errorf("a watch of a broker that stops ends with %v", err)
			}
		})
	}
}
