package broker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Each broker says, about once a second, that it is there and up to which
// position of the transcripts everything that it accepted is settled. When one
// falls silent, the others settle what came after.
const (
	heartbeat   = time.Second
	silentAfter = 3 * time.Second
)

// presence keeps this broker's record, and looks at the others'.
type presence struct {
	b      *Broker
	bucket *store.Bucket

	mu        sync.Mutex
	seen      uint64              // the stream's last position, as last heard
	appending map[*appending]bool // appends whose outcome is not known yet
	pending   map[uint64]bool     // positions accepted here and not settled yet
	heardTo   uint64              // up to where everything was settled when the others were last heard
	replacing map[string]bool     // brokers that fell silent
	acked     time.Time           // when the record was sent that was acknowledged last
	back      time.Time           // until then it counts as away

	looking sync.Mutex // around, one at a time
	writing sync.Mutex // of the record
	written record

	first   uint64   // what the brokers before it had settled and on disk
	samples []sample // how far it had come, since then
}

// appending is an append on its way: its entry will stand after this position.
type appending struct{ after uint64 }

// openPresence finds what brokers before this one left undone, and begins to
// say that this one is there.
func (b *Broker) openPresence(ctx context.Context) error {
	bucket, err := b.store.Bucket(ctx, api.BrokersBucket, "brokers and how far each has settled its work", 0)
	if err != nil {
		return err
	}
	info, err := b.store.Info(ctx, api.SessionsStream)
	if err != nil {
		return err
	}
	p := &presence{b: b, bucket: bucket, pending: map[uint64]bool{}, appending: map[*appending]bool{}, replacing: map[string]bool{}, seen: info.Last}
	b.presence = p
	b.store.RenewLeaseBy(p.repeat)
	others, err := p.heard(ctx)
	if err != nil {
		return err
	}
	p.first = p.seen
	for _, o := range others {
		p.first = min(p.first, o.record.Synced)
	}
	if err := p.write(ctx); err != nil {
		return err
	}
	if err := bucket.Sync(); err != nil {
		return err // a power failure must not make the next start believe that nobody was here
	}
	if b.Alone {
		for _, o := range others {
			if err := p.takeOver(ctx, o); err != nil {
				return err
			}
		}
	}
	b.work.Go(p.beat)
	return nil
}

// starts notes an append before it is made.
func (p *presence) starts() *appending {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &appending{p.seen}
	p.appending[a] = true
	return a
}

// ends notes how an append came out: the position of its entry, or 0 for none.
func (p *presence) ends(a *appending, position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.appending, a)
	if position > 0 {
		p.pending[position] = true
		p.seen = max(p.seen, position)
	}
}

// found notes an entry that has to be settled, whoever made it.
func (p *presence) found(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[position] = true
}

// finished notes that all that follows from an entry is there.
func (p *presence) finished(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, position)
}

// low is the position up to which everything accepted here is settled.
func (p *presence) low() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	low := p.seen
	for a := range p.appending {
		low = min(low, a.after)
	}
	for position := range p.pending {
		low = min(low, position-1)
	}
	return low
}

// settled is the position up to which everything is settled, whichever broker
// accepted it.
func (p *presence) settled() uint64 {
	if p.b.Alone {
		return p.low()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heardTo
}

func (p *presence) write(ctx context.Context) error {
	now := record{Settled: p.low()}
	now.Synced = p.synced(p.b.Now(), now.Settled)
	var err error
	if now.Ends, err = p.derived(ctx); err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.put(ctx, now); err != nil {
		return err
	}
	p.written = now
	return nil
}

// beat writes this broker's record while there is news, or to show that it
// lives, and takes over from brokers that fell silent.
func (p *presence) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			p.b.Log.Warn("presence", zap.Error(err))
		}
	}
}

func (p *presence) look(ctx context.Context) error {
	p.looking.Lock()
	defer p.looking.Unlock()
	info, err := p.b.store.Info(ctx, api.SessionsStream)
	if err != nil {
		return errors.Join(err, p.repeat(ctx)) // this broker is there all the same
	}
	p.mu.Lock()
	p.seen = max(p.seen, info.Last)
	p.mu.Unlock()
	if !p.b.Alone || p.written.Settled != p.low() {
		if err := p.write(ctx); err != nil {
			return err
		}
	}
	if p.b.Alone {
		return nil
	}
	others, err := p.heard(ctx)
	if err != nil {
		return err
	}
	for _, o := range others {
		if p.gone(o) {
			p.replace(o)
		}
	}
	return nil
}

// replace takes over from a broker that fell silent, while this one goes on saying that
// it is there.
func (p *presence) replace(o another) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replacing[o.id] {
		return
	}
	p.replacing[o.id] = true
	p.b.work.Go(func(ctx context.Context) {
		if p.b.Silent != nil {
			p.b.Silent(o.id)
		}
		if err := p.takeOver(ctx, o); err != nil && ctx.Err() == nil {
			p.b.Log.Warn("taking over goes on", zap.String("broker", o.id), zap.Error(err))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.replacing, o.id)
	})
}

// another is the record of another broker.
type another struct {
	id       string
	at       time.Time
	revision uint64
	record   record
}

// heard reads the records of the other brokers. How far this one has come is
// noted before: a broker that is not found then has accepted nothing up to there.
func (p *presence) heard(ctx context.Context) (found []another, err error) {
	low := p.low()
	defer func() {
		if err == nil {
			p.note(low, found)
		}
	}()
	records, err := p.bucket.Records(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Subject == p.b.id {
			continue
		}
		o := another{id: r.Subject, at: r.Time, revision: r.Sequence}
		if err := json.Unmarshal(r.Data, &o.record); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, nil
}

// note keeps how far all have come, and who is there.
func (p *presence) note(low uint64, others []another) {
	brokers := []string{p.b.id}
	for _, o := range others {
		low = min(low, o.record.Settled)
		if !p.gone(o) {
			brokers = append(brokers, o.id)
		}
	}
	p.mu.Lock()
	p.heardTo = low
	p.mu.Unlock()
	p.b.homes.among(brokers)
}

// takeOver settles every session that has entries after what a broker that is
// gone had settled, and then forgets it.
func (p *presence) takeOver(ctx context.Context, o another) error {
	touched := map[performatives.SessionID]bool{}
	from, err := p.from(ctx, o.record)
	if err != nil {
		return err
	}
	if err := p.b.store.Read(ctx, api.SessionsStream, api.AllSessions, from+1, func(e store.Message) error {
		id, err := performatives.ParseSessionID(strings.TrimPrefix(e.Subject, api.Session("")))
		if err == nil {
			touched[id] = true
		}
		return nil
	}); err != nil {
		return err
	}
	p.b.Log.Info("taking over from a broker that is gone", zap.String("broker", o.id), zap.Int("sessions", len(touched)))
	failed := make(chan error, len(touched))
	for id := range touched {
		p.b.settleFrom(id, from, failed)
	}
	var failure error
	for range touched {
		if err := <-failed; errors.Is(err, errBroken) {
			p.b.Log.Error("a session cannot go on", zap.Error(err))
		} else if err != nil {
			failure = err
		}
	}
	if failure != nil {
		return failure
	}
	if err := p.bucket.DeleteIf(ctx, o.id, o.revision); err != nil {
		return err
	}
	_, err = p.heard(ctx)
	return err
}

// settleFrom reads a session anew and settles its entries after a position.
func (b *Broker) settleFrom(id performatives.SessionID, after uint64, done chan<- error) {
	if !b.sessions.run(id, func(ctx context.Context, l *live) {
		for _, d := range l.undelivered { // what this broker has still to deliver it finds again
			after = min(after, d.position-1)
		}
		l.forget(b.Modes)
		err := b.catchUpFrom(ctx, l, after)
		if err == nil {
			b.settle(ctx, l)
		}
		done <- err
	}) {
		done <- unavailable()
	}
}

// leave says goodbye: what this broker accepted is settled.
func (p *presence) leave(ctx context.Context) {
	p.mu.Lock()
	clean := len(p.pending) == 0 && len(p.appending) == 0
	p.mu.Unlock()
	if !clean {
		return // whoever comes next settles the rest
	}
	if err := p.bucket.Delete(ctx, p.b.id); err != nil {
		p.b.Log.Warn("presence", zap.Error(err))
	}
}
