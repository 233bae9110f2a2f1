package broker

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
)

// A record is what a broker says of itself: the position up to which every
// entry that it accepted is settled.
type record struct {
	Settled uint64            `json:"settled"`
	Ends    map[string]uint64 `json:"ends"`   // of the derived streams, when that was so
	Synced  uint64            `json:"synced"` // what Settled was so long ago that all of it is on disk
}

// A sample is how far this broker had come at a time.
type sample struct {
	at  time.Time
	low uint64
}

// derivedStreams hold what follows from the transcripts. They are fsynced now
// and then, each by itself.
var derivedStreams = [...]string{api.InboxStream, api.EscalationsStream, api.TimersStream, api.IndexStream}

// derived tells where the derived streams end.
func (p *presence) derived(ctx context.Context) (map[string]uint64, error) {
	ends := map[string]uint64{}
	for _, name := range derivedStreams {
		info, err := p.b.store.Info(ctx, name)
		if err != nil {
			return nil, err
		}
		ends[name] = info.Last
	}
	return ends, nil
}

// from is the position after which the work of a broker that is gone has to be
// looked at. Where a derived stream is shorter than it was, the machine went
// down with a part of it, and what is there for certain is what was on disk.
func (p *presence) from(ctx context.Context, r record) (uint64, error) {
	ends, err := p.derived(ctx)
	if err != nil {
		return 0, err
	}
	for name, end := range r.Ends {
		if ends[name] < end {
			p.b.Log.Warn("a power failure took what was derived", zap.String("stream", name), zap.Uint64("had", end), zap.Uint64("has", ends[name]))
			return r.Synced, nil
		}
	}
	return r.Settled, nil
}

// synced is what was settled so long ago that all of it is on disk.
func (p *presence) synced(now time.Time, low uint64) uint64 {
	p.samples = append(p.samples, sample{now, low})
	for len(p.samples) > 1 && now.Sub(p.samples[1].at) >= p.b.SyncedAfter {
		p.samples = p.samples[1:]
	}
	if s := p.samples[0]; now.Sub(s.at) >= p.b.SyncedAfter {
		return s.low
	}
	return p.first
}

// repeat writes the record as it was, to see whether it is acknowledged.
func (p *presence) repeat(ctx context.Context) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.put(ctx, p.written)
}

// recordTimeout is how long writing the record may take.
const recordTimeout = 2 * time.Second

func (p *presence) put(ctx context.Context, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	over, at := p.b.store.Connection(), time.Now()
	if _, err := p.bucket.Put(ctx, p.b.id, data); err != nil {
		return err
	}
	p.b.store.Acknowledged(at, over)
	p.renewed(at)
	return nil
}
