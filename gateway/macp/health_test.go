package macpgateway

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	pbhealth "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// At most maxWatches clients watch the health.
func TestWatches(t *testing.T) {
	t.Parallel()
	h := &healthy{look: func(context.Context) error { return nil }, watches: make(chan struct{}, 1)}
	h.watches <- struct{}{}
	if err := h.Watch(&pbhealth.HealthCheckRequest{}, watcher{ctx: t.Context()}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one too many gets %v", err)
	}
	<-h.watches
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := h.Watch(&pbhealth.HealthCheckRequest{}, watcher{ctx: gone}); status.Code(err) != codes.Canceled || len(h.watches) != 0 {
		t.Errorf("who goes away gets %v, and %d watch", err, len(h.watches))
	}
}

type watcher struct {
	pbhealth.Health_WatchServer
	ctx context.Context //nolint:containedctx // of the stream that it stands for
}

func (w watcher) Context() context.Context { return w.ctx }

func (watcher) Send(*pbhealth.HealthCheckResponse) error { return nil }
