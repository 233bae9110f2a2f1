package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// A peer is another broker, by its record.
type peer struct {
	id       string
	at       time.Time
	revision uint64
	record   record
}

// peers reads the records of the other brokers. What is applied here is noted
// before: a broker without a record then has accepted nothing up to there.
func (m *Membership) peers(ctx context.Context) (found []peer, err error) {
	applied := m.applied()
	records, err := m.bucket.Records(ctx, ">")
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Subject == m.o.ID {
			continue
		}
		p := peer{id: r.Subject, at: r.Time, revision: r.Sequence}
		if err := json.Unmarshal(r.Data, &p.record); err != nil {
			return nil, err
		}
		if p.record.Settled > 0 {
			p.record.Applied = store.Marks{max(p.record.Applied.At(0), p.record.Settled)}
		}
		found = append(found, p)
	}
	alive := []string{m.o.ID}
	for _, p := range found {
		applied.Lower(p.record.Applied)
		if !p.record.Restored && !m.dead(p) {
			alive = append(alive, p.id)
		}
	}
	m.mu.Lock()
	m.allApplied = applied
	m.mu.Unlock()
	m.setMembers(alive)
	return found, nil
}

// startRecovery recovers the work of a dead peer while heartbeats go on.
func (m *Membership) startRecovery(p peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recovering[p.id] {
		return
	}
	m.recovering[p.id] = m.work.Go(func(ctx context.Context) {
		if m.o.Suspect != nil {
			m.o.Suspect(p.id)
		}
		if err := m.recover(ctx, p); err != nil && ctx.Err() == nil {
			m.o.Log.Warn("recovery is tried again", zap.String("peer", p.id), zap.Error(err))
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.recovering, p.id)
	})
}

// recover applies the side effects of every session with entries after what a dead
// broker had applied, and then removes its record.
func (m *Membership) recover(ctx context.Context, p peer) (err error) {
	defer func() {
		if m.o.Recovered != nil && ctx.Err() == nil {
			m.o.Recovered(err)
		}
	}()
	after, err := m.recoverAfter(ctx, p.record)
	if err != nil {
		return err
	}
	touched := map[performatives.SessionID]bool{}
	if err := m.o.Store.ReadSentSince(ctx, after, func(e store.Message) error {
		id, err := performatives.ParseSessionID(strings.TrimPrefix(e.Subject, api.Session("")))
		if err == nil {
			touched[id] = true
		}
		return nil
	}); err != nil {
		return err
	}
	m.o.Log.Info("recovering the work of a dead broker", zap.String("peer", p.id), zap.Int("sessions", len(touched)))
	var outcomes []<-chan error
	for id := range touched {
		outcomes = append(outcomes, m.o.Recover(id, after.At(m.o.Store.Shard(id))))
	}
	var failure error
	for _, outcome := range outcomes {
		if err := <-outcome; errors.Is(err, ErrBroken) {
			m.o.Log.Error("a session cannot go on", zap.Error(err))
		} else if err != nil {
			failure = err
		}
	}
	if failure != nil {
		return failure
	}
	err = m.bucket.DeleteIf(ctx, p.id, p.revision)
	if err != nil && (!p.record.Restored || !errors.Is(err, store.ErrConflict)) { // of a restored one another broker that starts was faster
		return err
	}
	_, err = m.peers(ctx)
	return err
}
