package cluster

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
)

// Counts are what this broker knows of the cluster.
type Counts struct {
	Partitions int // that it owns
	Alive      int // brokers, this one too
	Recovering int // peers that are suspected, and whose work it recovers
	Unapplied  int // entries that it accepted or recovers, whose side effects are not all applied
}

// Counts counts without asking the store.
func (m *Membership) Counts() (n Counts) {
	for _, owner := range m.owners.Load() {
		if owner == m.o.ID {
			n.Partitions++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.Alive, n.Recovering, n.Unapplied = max(1, len(m.members)), len(m.recovering), len(m.unapplied)
	return n
}

// Status lists the brokers by their records, and what each owns.
func (m *Membership) Status(ctx context.Context) ([]api.BrokerRow, error) {
	peers, err := m.peers(ctx)
	if err != nil {
		return nil, err
	}
	_, now := m.HandedOver()
	m.mu.Lock()
	own := api.BrokerRow{ID: m.o.ID, Version: api.Version, Heartbeat: api.Timestamp(m.o.Now()), HandedOver: now} // it answers
	m.mu.Unlock()
	all := []api.BrokerRow{own}
	for _, p := range peers {
		if p.record.Restored {
			continue
		}
		all = append(all, api.BrokerRow{
			ID: p.id, Version: p.record.Version, Heartbeat: api.Timestamp(p.at), Suspected: m.o.Alone || m.dead(p), HandedOver: len(p.record.HandedOver),
		})
	}
	slices.SortFunc(all, func(a, b api.BrokerRow) int { return strings.Compare(a.ID, b.ID) })
	for _, owner := range m.owners.Load() {
		if n := slices.IndexFunc(all, func(b api.BrokerRow) bool { return b.ID == owner }); n >= 0 {
			all[n].Partitions++
		}
	}
	return all, nil
}
