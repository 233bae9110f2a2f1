package store

import (
	"context"
	"time"

	"github.com/parley-asp/parley/internal/background"
)

// WatchFor is Watch of a bucket that remembers for another time that a key was taken away.
func (b *Bucket) WatchFor(ctx context.Context, work *background.Group, markersFor time.Duration, saw func(Entry)) error {
	return b.watch(ctx, work, markersFor, saw)
}
