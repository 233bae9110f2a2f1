package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
)

// Check reads a whole backup, checks the sum of every stream, and returns the manifest and
// the keys.
func Check(from io.Reader) (m Manifest, keys []File, err error) {
	err = read(from, visitor{
		manifest: func(read Manifest) error { m = read; return nil },
		key:      func(f File) error { keys = append(keys, f); return nil },
	})
	return m, keys, err
}

// Options configure a restore.
type Options struct {
	Replicas int  // of each stream; 0 keeps its number
	Archive  bool // make a store from which ended sessions move to the archive
	Shards   int  // of the store (store.Options); 0 keeps their number
}

// Restore makes the streams of a backup over a connection to the broker's account. The server must have no
// streams of a broker, unless a Restore did not end: those are removed. No broker may be running there, and none
// starts before Restore has ended. Call Check first: Restore notices damage only when it gets there.
func Restore(ctx context.Context, nc *nats.Conn, from io.Reader, o Options) (m Manifest, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return m, err
	}
	ended, err := alone(ctx, nc)
	if err != nil {
		return m, err
	}
	defer ended()
	if err := beginRestore(ctx, nc, js, o.Replicas); err != nil {
		return m, err
	}
	if m, err = restore(ctx, nc, js, from, o); err != nil {
		return m, err
	}
	return m, js.DeleteStream(ctx, api.RestoringStream)
}

func restore(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, from io.Reader, o Options) (m Manifest, err error) {
	var to, made string // subject for the chunks of the current stream, and its name here
	var listed []consumer
	moves := resharder{shards: o.Shards, options: o}
	err = read(from, visitor{
		manifest: func(read Manifest) error { m = read; return nil },
		stream: func(name string, as config) (err error) {
			if o.Shards > 0 && (name == api.ShardsStream || slices.Contains(api.ShardedStreams, api.Unsharded(name))) {
				name = moves.setAside(name, as)
			}
			made = name
			to, err = begin(ctx, nc, name, as, o)
			return err
		},
		consumers: func(page []consumer) { listed = append(listed, page...) },
		chunk:     func(_ string, data []byte) error { return send(ctx, nc, to, data) },
		end: func(name string) error {
			if err := send(ctx, nc, to, nil); err != nil {
				return err
			}
			for _, c := range listed {
				if err := c.make(ctx, js, made, c.Floor+1); err != nil {
					return fmt.Errorf("%s: %w", c.Config.Durable, err)
				}
			}
			listed = nil
			if o.Shards == 0 && api.Unsharded(name) == api.InboxStream {
				return dropSessionConsumers(ctx, nc, name)
			}
			return nil
		},
	})
	if err == nil && slices.Contains(m.Streams, api.LogStream) {
		err = boundLog(ctx, nc)
	}
	if err != nil {
		return m, err
	}
	var records []string
	least, err := applied(ctx, nc, &records)
	if err != nil {
		return m, err
	}
	if least == nil {
		least = m.Applied
	} else if m.Applied != nil {
		least.Lower(m.Applied)
	}
	if o.Shards > 0 {
		if least, err = moves.copyAll(ctx, nc, least); err != nil {
			return m, err
		}
	}
	return m, leaveWork(ctx, nc, least, records)
}

// leaveWork notes up to where side effects are applied for certain, in one membership record in
// place of those of the backup, if there were any: the first broker applies the rest before it answers, and waits for none that
// cannot be alive.
func leaveWork(ctx context.Context, nc *nats.Conn, least store.Marks, records []string) error {
	if least == nil {
		return nil
	}
	left, err := json.Marshal(map[string]any{"applied": least, "synced": least, "restored": true})
	if err != nil {
		return err
	}
	bucket, err := brokers(ctx, nc)
	if err != nil {
		return err
	}
	if _, err := bucket.Put(ctx, "restored", left); err != nil {
		return err
	}
	for _, name := range records {
		if err := bucket.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func brokers(ctx context.Context, nc *nats.Conn) (jetstream.KeyValue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return js.KeyValue(ctx, api.BrokersBucket)
}

// applied is the least that the brokers' records have, nil if there are none. names, if there
// is one, gets their keys.
func applied(ctx context.Context, nc *nats.Conn, names *[]string) (least store.Marks, err error) {
	bucket, err := brokers(ctx, nc)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	keys, err := bucket.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, err
	}
	for _, key := range keys {
		entry, err := bucket.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // that broker has left
		} else if err != nil {
			return nil, err
		}
		var record struct {
			Applied store.Marks `json:"applied"`
			Settled uint64      `json:"settled"` // Applied, as brokers wrote it up to the end of 2026
		}
		if err := json.Unmarshal(entry.Value(), &record); err != nil {
			return nil, err
		}
		if record.Settled > 0 {
			record.Applied = store.Marks{max(record.Applied.At(0), record.Settled)}
		}
		if least == nil {
			least = record.Applied
		} else {
			least.Lower(record.Applied)
		}
		if names != nil {
			*names = append(*names, key)
		}
	}
	return least, nil
}

// dropSessionConsumers removes the session consumers from the inboxes that were restored: nobody
// pulls from them any more.
func dropSessionConsumers(ctx context.Context, nc *nats.Conn, inboxes string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, inboxes)
	if err != nil {
		return err
	}
	var expiring []string
	all := stream.ListConsumers(ctx)
	for c := range all.Info() {
		if c.Config.InactiveThreshold > 0 {
			expiring = append(expiring, c.Name)
		}
	}
	if err := all.Err(); err != nil {
		return err
	}
	for _, consumer := range expiring {
		if err := stream.DeleteConsumer(ctx, consumer); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return nil
}

// boundLog notes how long the public log was in the backup, or in an earlier one that it has not resumed from. What was
// published since others may have kept, so the log must not grow before an operator says what that is.
func boundLog(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	log, err := js.Stream(ctx, api.LogStream)
	if err != nil {
		return err
	}
	bucket, err := js.KeyValue(ctx, api.LedgerBucket)
	if err != nil {
		return err
	}
	bound := struct {
		Size uint64 `json:"size"`
	}{log.CachedInfo().State.LastSeq}
	length := bound.Size
	if earlier, err := bucket.Get(ctx, api.RestoredKey); err == nil {
		err = json.Unmarshal(earlier.Value(), &bound)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	bound.Size = min(bound.Size, length)
	text, err := json.Marshal(bound)
	if err != nil {
		return err
	}
	_, err = bucket.Put(ctx, api.RestoredKey, text)
	return err
}

// config is the server's description of a stream, passed back as it was.
type config struct {
	Config map[string]any  `json:"config"`
	State  json.RawMessage `json:"state"`
}

func begin(ctx context.Context, nc *nats.Conn, name string, as config, o Options) (to string, err error) {
	if o.Replicas > 0 {
		as.Config["num_replicas"] = o.Replicas
	}
	if o.Archive && api.Unsharded(name) == api.SessionsStream {
		as.Config["retention"] = "workqueue"
	}
	if name == api.ArchiveStream || name == api.ArchiveIndexStream || name == api.CaseLogStream {
		as.Config["deny_delete"] = false // an earlier version denied it; sessions can be erased
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Deliver string              `json:"deliver_subject"`
	}
	if err := ask(ctx, nc, "$JS.API.STREAM.RESTORE."+name, as, &answer); err != nil {
		return "", err
	}
	if answer.Error != nil {
		return "", answer.Error
	}
	return answer.Deliver, nil
}

// send sends the server a chunk, or nil at the end of the stream, and waits for its reply.
func send(ctx context.Context, nc *nats.Conn, to string, chunk []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*chunkTimeout) // at the end the server rebuilds the stream
	defer cancel()
	m, err := nc.RequestWithContext(ctx, to, chunk)
	if err != nil || len(m.Data) == 0 {
		return err
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// A visitor is called with the parts of a backup in order. Functions may be nil, except
// manifest.
type visitor struct {
	manifest func(Manifest) error
	key      func(File) error
	stream   func(name string, as config) error
	chunk    func(stream string, data []byte) error
	end      func(stream string) error

	consumers func(page []consumer) // of the next stream
}

// largest is the most bytes of one file in the tar.
const largest = 16 << 20

type reader struct {
	visitor
	begun, ended bool
	left         map[string]bool // streams that are not complete
	parts        map[string]string
	sum          *summer // of the current stream
}
