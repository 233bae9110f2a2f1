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

	"github.com/parley-asp/parley/custody"
	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/internal/testkit"
)

const bearer = "parley_secret"

// broken panics with what it is given, a Custody, and is a Broker that is not healthy.
type broken struct {
	macpgateway.Broker
	healthy error
}

func (broken) Admit(_ context.Context, bearer string) (custody.Pass, error) { panic(bearer) }

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
	serve(t, macpgateway.Options{Broker: broken{}, Custody: broken{}, Log: zap.NewNop()}, func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
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

// The health of the broker is the service's. Few watch it, and they hear when it ends.
func TestHealth(t *testing.T) {
	t.Parallel()
	for want, err := range map[pbhealth.HealthCheckResponse_ServingStatus]error{
		pbhealth.HealthCheckResponse_SERVING: nil, pbhealth.HealthCheckResponse_NOT_SERVING: errors.New("the disk is full"),
	} {
		serve(t, macpgateway.Options{Broker: broken{healthy: err}, Log: zap.NewNop()}, func(ctx context.Context, g *macpgateway.Gateway, conn *grpc.ClientConn) {
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
