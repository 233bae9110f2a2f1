package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// KeyRecord is the store's record of the broker's keys, nil if there is none.
func KeyRecord(ctx context.Context, nc *nats.Conn) ([]byte, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	var e jetstream.KeyValueEntry
	bucket, err := js.KeyValue(ctx, api.LedgerBucket)
	if err == nil {
		e, err = bucket.Get(ctx, api.BrokerKeysKey)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", explain(ctx, nc, api.StreamOf(api.LedgerBucket), err))
	}
	return e.Value(), nil
}
