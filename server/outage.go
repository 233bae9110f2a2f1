package server

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// outageEvery is how often a broker looks whether it could accept an act.
const outageEvery = 5 * time.Second

// logOutages says when no act can be accepted any more, and when acts are again.
func logOutages(ctx context.Context, healthy func(context.Context) error, log *zap.Logger) {
	tick := time.NewTicker(outageEvery)
	defer tick.Stop()
	for since := (time.Time{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked, stop := context.WithTimeout(ctx, readyWithin)
		err := healthy(asked)
		stop()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && since.IsZero():
			since = time.Now()
			log.Error("no act can be accepted", zap.Error(err))
		case err == nil && !since.IsZero():
			log.Info("acts are accepted again", zap.Duration("after", time.Since(since).Round(time.Second)))
			since = time.Time{}
		}
	}
}
