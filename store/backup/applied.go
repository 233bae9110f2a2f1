package backup

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
)

// allApplied is up to where all side effects are applied. Where no broker has a record, none left work behind: then it is
// where the transcripts ended before. Of what a broker accepts that starts later, the snapshots may lack side effects.
func allApplied(ctx context.Context, nc *nats.Conn, names []string) (store.Marks, error) {
	if !slices.Contains(names, api.StreamOf(api.BrokersBucket)) {
		return nil, nil // no broker ever ran
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	of := 0
	for _, name := range names {
		if api.Unsharded(name) == api.SessionsStream {
			of++
		}
	}
	ends := make(store.Marks, of)
	for n, name := range shardNames(api.SessionsStream, of) {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("backup: %w", explain(ctx, nc, name, err))
		}
		ends[n] = store.Position(stream.CachedInfo().State.LastSeq, n, of)
	}
	least, err := applied(ctx, nc, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("backup: %w", explain(ctx, nc, api.StreamOf(api.BrokersBucket), err))
	case least != nil:
		return least, nil
	}
	return ends, nil
}
