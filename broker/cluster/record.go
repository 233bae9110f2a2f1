package cluster

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// A record is what a broker says of itself: up to where the side
// effects of every entry that it accepted are applied.
type record struct {
	Applied store.Marks       `json:"applied"`
	Settled uint64            `json:"settled,omitzero"` // Applied, as brokers wrote it up to the end of 2026
	Ends    map[string]uint64 `json:"ends"`             // of the derived streams at that time
	Synced  store.Marks       `json:"synced"`           // what Applied was so long ago that all of it is on disk

	Version string `json:"version,omitzero"` // of the broker

	// HandedOver are sessions of which this broker cannot apply side effects, with the position after which.
	HandedOver map[performatives.SessionID]uint64 `json:"handedOver,omitzero"`

	// Restored says that a restore wrote this of the brokers of the backup. None of them is alive.
	Restored bool `json:"restored,omitzero"`
}

// A sample is what was applied at a time.
type sample struct {
	at      time.Time
	applied store.Marks
}

// derivedStreams hold what follows from the transcripts. The server fsyncs them
// now and then, each by itself.
var derivedStreams = [...]string{api.InboxStream, api.EscalationsStream, api.TimersStream, api.IndexStream, api.LogStream}

// derivedEnds are the last sequences of the derived streams.
func (m *Membership) derivedEnds(ctx context.Context) (map[string]uint64, error) {
	ends := map[string]uint64{}
	for _, name := range derivedStreams {
		shards, err := m.o.Store.Ends(ctx, name)
		if err != nil {
			return nil, err
		}
		for n, end := range shards {
			ends[api.ShardName(name, n)] = end
		}
	}
	return ends, nil
}

// recoverAfter is where recovery of a dead broker's work begins: after what its record says was applied. If a
// derived stream is shorter than the record says, a power failure took its end, and recovery begins
// after what was on disk for certain.
func (m *Membership) recoverAfter(ctx context.Context, r record) (store.Marks, error) {
	ends, err := m.derivedEnds(ctx)
	if err != nil {
		return nil, err
	}
	for name, end := range r.Ends {
		if ends[name] < end {
			m.o.Log.Warn("a power failure took derived data", zap.String("stream", name), zap.Uint64("had", end), zap.Uint64("has", ends[name]))
			return r.Synced, nil
		}
	}
	return r.Applied, nil
}

// synced is what was applied so long ago that all of it is on disk.
func (m *Membership) synced(now time.Time, applied store.Marks) store.Marks {
	m.samples = append(m.samples, sample{now, applied})
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) >= m.o.SyncedAfter {
		m.samples = m.samples[1:]
	}
	if s := m.samples[0]; now.Sub(s.at) >= m.o.SyncedAfter {
		return s.applied
	}
	return m.first
}

// write writes this broker's record as it is now.
func (m *Membership) write(ctx context.Context) error {
	now := record{Applied: m.applied(), Version: api.Version, HandedOver: m.handedOverNow()}
	now.Synced = m.synced(m.o.Now(), now.Applied)
	var err error
	if now.Ends, err = m.derivedEnds(ctx); err != nil {
		return err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := m.put(ctx, now); err != nil {
		return err
	}
	m.written = now
	return nil
}

// rewrite writes the record as it was, to see whether that is acknowledged. It
// renews the store's read lease.
func (m *Membership) rewrite(ctx context.Context) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.put(ctx, m.written)
}

// recordTimeout is how long writing the record may take.
const recordTimeout = 2 * time.Second

func (m *Membership) put(ctx context.Context, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	connection, sent := m.o.Store.Connection(), time.Now()
	if _, err := m.bucket.Put(ctx, m.o.ID, data); err != nil {
		return err
	}
	m.o.Store.Acknowledged(sent, connection)
	m.renewed(sent)
	return nil
}
