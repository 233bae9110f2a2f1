package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrUnavailable means that a stream cannot be read now: too few of its servers run.
var ErrUnavailable = errors.New("the store cannot be read now")

// explain says which stream an error is of, and ErrUnavailable if the server answers nothing for it. Then it says whether
// the stream has no leader, if that is known.
func explain(ctx context.Context, nc *nats.Conn, stream string, err error) error {
	refused, ok := errors.AsType[*jetstream.APIError](err)
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if ctx.Err() != nil || !silent && (!ok || refused.Code != http.StatusServiceUnavailable) {
		return fmt.Errorf("%s: %w", stream, err)
	}
	what := "no leader answers for stream " + stream
	if js, failed := jetstream.New(nc); failed == nil {
		s, failed := js.Stream(ctx, stream)
		if failed == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader == "" {
			what = "stream " + stream + " has no leader"
		}
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, what, err)
}
