// Package availability knows which agents are online: those that acted, called a verb, pulled
// from their inbox or held a stream open within the last minute, at any broker.
//
//	a, err := availability.Open(ctx, availability.Options{Store: s, …})
//	if err != nil { … }
//	defer a.Close()
//	a.Seen(agent)
//	online, last := a.Of(agent)
//
// What is seen stays in memory. Every few seconds a broker tells the others whom it saw. A
// record is written when an agent goes offline, and at most four times an hour while it is
// online, so no act costs a write.
package availability

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

const (
	// OnlineFor is how long an agent is online after it was seen.
	OnlineFor = time.Minute

	sweepEvery  = 5 * time.Second
	renewAfter  = 15 * time.Minute // how old the record of an agent that is online gets
	perMessage  = 1_000            // agents in one message to the other brokers
	sightings   = "asp.availability"
	pullsWithin = 2 * time.Second
)

// Options say how agents are watched.
type Options struct {
	Store *store.Store
	Known func(performatives.Agent) bool // it is registered; others are not watched
	Now   func() time.Time
	Log   *zap.Logger
}

// Agents are those that were ever seen.
type Agents struct {
	o      Options
	bucket *store.Bucket
	work   *background.Group
	stop   func()

	mu   sync.RWMutex
	seen map[performatives.Agent]*sighting
}

// A sighting is when an agent was last seen, in milliseconds since 1970.
type sighting struct {
	last atomic.Int64
	here atomic.Bool // this broker saw it last

	published int64 // last, as the other brokers received it; used by sweep alone
	recorded  atomic.Int64
}

// A record is what the bucket has of an agent.
type record struct {
	Agent performatives.Agent `json:"agentId"`
	Last  time.Time           `json:"lastSeen"`
}

// Open reads the records, and follows what other brokers see until Close.
func Open(ctx context.Context, o Options) (*Agents, error) {
	bucket, err := o.Store.Bucket(ctx, api.SeenBucket, "when agents were last seen", 0)
	if err != nil {
		return nil, err
	}
	a := &Agents{o: o, bucket: bucket, work: background.New(), seen: map[performatives.Agent]*sighting{}}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, err
	}
	a.work.Go(func(ctx context.Context) {
		for background.Pause(ctx, sweepEvery) == nil {
			a.sweep(ctx)
		}
	})
	return a, nil
}

func (a *Agents) open(ctx context.Context) error {
	if err := a.bucket.Watch(ctx, a.work, a.saw); err != nil {
		return err
	}
	var err error
	a.stop, err = a.o.Store.Bus().Listen(sightings, a.received)
	return err
}

// Close stops watching.
func (a *Agents) Close() {
	if a.stop != nil {
		a.stop()
	}
	a.work.Close()
}

// Seen says that an agent is there now.
func (a *Agents) Seen(agent performatives.Agent) {
	if s := a.find(agent); s != nil {
		s.last.Store(a.o.Now().UnixMilli())
		s.here.Store(true)
	}
}

// Of reports whether an agent is online, and when it was last seen; never is the zero time.
func (a *Agents) Of(agent performatives.Agent) (online bool, last time.Time) {
	a.mu.RLock()
	s := a.seen[agent]
	a.mu.RUnlock()
	if s == nil {
		return false, time.Time{}
	}
	last = time.UnixMilli(s.last.Load())
	return a.o.Now().Sub(last) < OnlineFor, last.UTC()
}

func (a *Agents) find(agent performatives.Agent) *sighting {
	a.mu.RLock()
	s := a.seen[agent]
	a.mu.RUnlock()
	if s != nil || agent == "" || agent.IsHuman() || !a.o.Known(agent) {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[agent] == nil {
		a.seen[agent] = &sighting{}
	}
	return a.seen[agent]
}

// received takes what another broker saw.
func (a *Agents) received(data []byte) []byte {
	var seen map[performatives.Agent]int64
	if err := json.Unmarshal(data, &seen); err != nil {
		a.o.Log.Error("agents that another broker saw", zap.Error(err))
		return nil
	}
	for agent, at := range seen {
		a.later(agent, at)
	}
	return nil
}

func (a *Agents) later(agent performatives.Agent, at int64) *sighting {
	s := a.find(agent)
	if s != nil && at > s.last.Load() {
		s.last.Store(at)
		s.here.Store(false)
	}
	return s
}

// saw takes a record of the bucket.
func (a *Agents) saw(e store.Entry) {
	var r record
	if e.Deleted || json.Unmarshal(e.Value, &r) != nil {
		return
	}
	if s := a.later(r.Agent, r.Last.UnixMilli()); s != nil {
		s.recorded.Store(r.Last.UnixMilli())
	}
}

// sweep publishes whom this one saw, and writes the records that are due.
func (a *Agents) sweep(ctx context.Context) {
	a.mu.RLock()
	all := maps.Clone(a.seen)
	a.mu.RUnlock()
	fresh := map[performatives.Agent]int64{}
	for agent, s := range all {
		switch last := s.last.Load(); {
		case !a.o.Known(agent):
			a.forget(ctx, agent)
			delete(all, agent)
		case s.here.Load() && last > s.published:
			s.published, fresh[agent] = last, last
			if len(fresh) == perMessage {
				a.publish(fresh)
				clear(fresh)
			}
		}
	}
	a.publish(fresh)
	for agent, s := range all {
		if ctx.Err() == nil && a.due(ctx, agent, s) {
			a.write(ctx, agent, s)
		}
	}
}

// due reports whether an agent's record is to be written. The broker that saw it last writes it;
// if that one is gone, every other may.
func (a *Agents) due(ctx context.Context, agent performatives.Agent, s *sighting) bool {
	last := s.last.Load()
	since, unrecorded := a.o.Now().Sub(time.UnixMilli(last)), time.Duration(last-s.recorded.Load())*time.Millisecond
	here := s.here.Load()
	switch {
	case unrecorded <= 0:
		return false
	case since < OnlineFor:
		return here && unrecorded >= renewAfter
	case !here:
		return since >= 2*OnlineFor
	}
	ctx, cancel := context.WithTimeout(ctx, pullsWithin)
	defer cancel()
	pulls, err := a.o.Store.WaitingPulls(ctx, api.InboxStream, api.InboxOf(agent), agent.Token())
	if err == nil && pulls > 0 { // one long pull is a sign of life, too
		a.Seen(agent)
	}
	return err == nil && pulls == 0 // what failed is tried again
}

func (a *Agents) publish(seen map[performatives.Agent]int64) {
	if len(seen) == 0 {
		return
	}
	data, err := json.Marshal(seen)
	if err == nil {
		err = a.o.Store.Bus().Publish(sightings, data)
	}
	if err != nil {
		a.o.Log.Debug("other brokers do not hear whom this one saw", zap.Error(err))
	}
}

func (a *Agents) write(ctx context.Context, agent performatives.Agent, s *sighting) {
	last := s.last.Load()
	data, err := json.Marshal(record{agent, time.UnixMilli(last).UTC()})
	if err == nil {
		_, err = a.bucket.Put(ctx, key(agent), data)
	}
	if err != nil {
		a.o.Log.Warn("when an agent was last seen is not stored yet", zap.String("agent", string(agent)), zap.Error(err))
		return
	}
	s.recorded.Store(last)
}

func (a *Agents) forget(ctx context.Context, agent performatives.Agent) {
	a.mu.Lock()
	delete(a.seen, agent)
	a.mu.Unlock()
	if err := a.bucket.Delete(ctx, key(agent)); err != nil {
		a.o.Log.Warn("when a removed agent was last seen is still stored", zap.String("agent", string(agent)), zap.Error(err))
	}
}

// key is an agent's token without the ~ that a bucket's key cannot have; no token has a /.
func key(agent performatives.Agent) string { return strings.ReplaceAll(agent.Token(), "~", "/") }
