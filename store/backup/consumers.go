package backup

import (
	"context"
	"fmt"
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
func consumers(ctx context.Context, js jetstream.JetStream, stream string) (kept []consumer, err error) {
	of, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	all := of.ListConsumers(ctx)
	for c := range all.Info() {
		if c.Config.Durable == "" || c.Config.InactiveThreshold > 0 || strings.Contains(c.Name, "+") {
			continue
		}
		kept = append(kept, consumer{c.Config, c.AckFloor.Stream})
	}
	return kept, all.Err()
}

// consumers writes those of a stream.
func (w *writer) consumers(ctx context.Context, nc *nats.Conn, stream string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	all, err := consumers(ctx, js, stream)
	for n := 0; err == nil && len(all) > 0; n++ {
		page := all[:min(consumersInPart, len(all))]
		all = all[len(page):]
		err = w.json(fmt.Sprintf("%s%s/%s%08d", streamFolder, stream, consumersName, n), page)
	}
	return err
}

// make makes a consumer anew, which goes on from a message.
func (c consumer) make(ctx context.Context, js jetstream.JetStream, stream string, from uint64) error {
	c.Config.DeliverPolicy, c.Config.OptStartSeq, c.Config.OptStartTime = jetstream.DeliverByStartSequencePolicy, from, nil
	_, err := js.CreateOrUpdateConsumer(ctx, stream, c.Config)
	return err
}
