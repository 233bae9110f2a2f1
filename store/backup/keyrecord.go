package backup

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
)

// KeyRecord is the store's record of the broker's keys.
func KeyRecord(ctx context.Context, nc *nats.Conn) (r store.KeyRecord, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return r, err
	}
	if r, err = store.ReadKeyRecord(ctx, js); err != nil {
		return r, fmt.Errorf("backup: %w", explain(ctx, nc, api.StreamOf(api.LedgerBucket), err))
	}
	return r, nil
}
