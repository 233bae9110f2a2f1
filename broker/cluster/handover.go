package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
)

const (
	maxHandedOver = 100              // sessions in a record; the others stay with their broker, which goes on trying
	helpAgain     = 10 * time.Second // after which a session that is still handed over is looked at again
)

// HandOver asks the peers, by the next record, to apply the side effects of a session's entries
// after a sequence. This broker goes on trying, and finds what they did.
func (m *Membership) HandOver(id performatives.SessionID, after uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handedOver[id] = after
	m.handOvers++
}

// TakeBack says that the side effects of a session are applied.
func (m *Membership) TakeBack(id performatives.SessionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handedOver, id)
}

// HandedOver is how many sessions were handed over so far, and how many are now.
func (m *Membership) HandedOver() (total uint64, now int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handOvers, len(m.handedOver)
}

// handedOverNow is what the record says of it.
func (m *Membership) handedOverNow() map[performatives.SessionID]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	some := map[performatives.SessionID]uint64{}
	for _, id := range slices.Sorted(maps.Keys(m.handedOver)) {
		if len(some) == maxHandedOver {
			break
		}
		some[id] = m.handedOver[id]
	}
	return some
}

// help applies what a peer that is alive has handed over. Of its peers, one does it.
func (m *Membership) help(p peer) {
	if len(p.record.HandedOver) == 0 {
		return
	}
	m.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(m.members), func(id string) bool { return id == p.id })
	m.mu.Unlock()
	owners, now := OwnersAmong(others), time.Now()
	for id, after := range p.record.HandedOver {
		if owners.Of(id) != m.o.ID {
			continue
		}
		m.mu.Lock()
		due := now.Sub(m.helped[id]) > helpAgain
		if due {
			maps.DeleteFunc(m.helped, func(_ performatives.SessionID, at time.Time) bool { return now.Sub(at) > helpAgain })
			m.helped[id] = now
		}
		m.mu.Unlock()
		if !due {
			continue
		}
		m.o.Log.Info("applying side effects for a peer", zap.String("peer", p.id), zap.String("session", string(id)))
		outcome := m.o.Recover(id, after)
		m.work.Go(func(ctx context.Context) {
			select {
			case err := <-outcome:
				if err != nil {
					m.o.Log.Warn("side effects not applied for a peer", zap.String("session", string(id)), zap.Error(err))
				}
			case <-ctx.Done():
			}
		})
	}
}
