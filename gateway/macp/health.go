package macpgateway

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	pbhealth "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/parley-asp/parley/gateway/macp/pb"
)

// Bounds of watching the health, for which nobody needs a token.
const (
	maxWatches = 256
	lookEvery  = 15 * time.Second
	lookWithin = 5 * time.Second
)

// healthy answers gRPC's health checks. The health of the broker is the service's.
type healthy struct {
	pbhealth.UnimplementedHealthServer
	look    func(context.Context) error // the broker's health
	ending  <-chan struct{}
	watches chan struct{} // has one for each open watch
}

func (h *healthy) serves(service string) bool {
	return service == "" || service == pb.MACPRuntimeService_ServiceDesc.ServiceName
}

// state is the health of the broker now.
func (h *healthy) state(ctx context.Context) pbhealth.HealthCheckResponse_ServingStatus {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if h.look(ctx) != nil {
		return pbhealth.HealthCheckResponse_NOT_SERVING
	}
	return pbhealth.HealthCheckResponse_SERVING
}

// Check answers with the state of a service.
func (h *healthy) Check(ctx context.Context, q *pbhealth.HealthCheckRequest) (*pbhealth.HealthCheckResponse, error) {
	if !h.serves(q.GetService()) {
		return nil, status.Error(codes.NotFound, "there is no such service")
	}
	return &pbhealth.HealthCheckResponse{Status: h.state(ctx)}, nil
}

// Watch sends the state of a service, and each change, until the gateway ends.
func (h *healthy) Watch(q *pbhealth.HealthCheckRequest, out pbhealth.Health_WatchServer) error {
	arrived(out.Context())
	select {
	case h.watches <- struct{}{}:
		defer func() { <-h.watches }()
	default:
		return status.Error(codes.ResourceExhausted, "too many watch the health: check it")
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	sent := pbhealth.HealthCheckResponse_UNKNOWN
	for {
		now := pbhealth.HealthCheckResponse_SERVICE_UNKNOWN
		if h.serves(q.GetService()) {
			now = h.state(out.Context())
		}
		if now != sent {
			if err := out.Send(&pbhealth.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-look.C:
		case <-out.Context().Done():
			return status.FromContextError(out.Context().Err()).Err()
		case <-h.ending:
			return status.Error(codes.Unavailable, "the broker stops; ask another")
		}
	}
}
