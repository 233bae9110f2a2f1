package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A consumer of an inbox that outlives its readers.
type consumer struct {
	Config jetstream.ConsumerConfig `json:"config"`
	Floor  uint64                   `json:"floor"` // sequence up to which it has acknowledged all
}

// consumersInPart bounds the size of a part that lists them.
const consumersInPart = 1000

// consumers are those of a stream. Those of a session end with their readers, and are left out.
func consumers(ctx context.Context, nc *nats.Conn, stream string) (kept []consumer, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	names, err := durables(ctx, nc, stream)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := js.Consumer(ctx, stream, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if info := c.CachedInfo(); info.Config.Durable != "" && info.Config.InactiveThreshold == 0 {
			kept = append(kept, consumer{info.Config, info.AckFloor.Stream})
		}
	}
	return kept, nil
}

// durables are the names of a stream's consumers but for those of sessions. Pages of the server's list begin by an offset. They
// overlap by a half, or one would be missing where another before it ended between two pages.
func durables(ctx context.Context, nc *nats.Conn, stream string) (names []string, err error) {
	for offset := 0; ; {
		var page struct {
			Error        *jetstream.APIError `json:"error"`
			Total, Limit int
			Consumers    []string
		}
		if err := ask(ctx, nc, "$JS.API.CONSUMER.NAMES."+stream, map[string]int{"offset": offset}, &page); err != nil {
			return nil, err
		}
		if page.Error != nil {
			return nil, page.Error
		}
		for _, name := range page.Consumers {
			if !strings.Contains(name, "+") {
				names = append(names, name)
			}
		}
		if offset += max(1, page.Limit/2); offset >= page.Total {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

// consumers writes those of a stream.
func (w *writer) consumers(ctx context.Context, nc *nats.Conn, stream string) error {
	all, err := consumers(ctx, nc, stream)
	if err != nil {
		return fmt.Errorf("%w: %w", errEnded, err) // to begin again
	}
	n := 0
	for page := range slices.Chunk(all, consumersInPart) {
		if err := w.json(fmt.Sprintf("%s%s/%s%08d", streamFolder, stream, consumersName, n), page); err != nil {
			return err
		}
		n++
	}
	return nil
}

// make makes a consumer anew, which goes on from a message.
func (c consumer) make(ctx context.Context, js jetstream.JetStream, stream string, from uint64) error {
	c.Config.DeliverPolicy, c.Config.OptStartSeq, c.Config.OptStartTime = jetstream.DeliverByStartSequencePolicy, from, nil
	_, err := js.CreateOrUpdateConsumer(ctx, stream, c.Config)
	return err
}
