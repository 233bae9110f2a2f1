package cluster

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Where several brokers share the work, each partition of the sessions has an owner
// among them: the broker that has its sessions cached. Ownership is an optimisation.
// When two brokers see different owners, or an owner is gone, somebody reads what the
// other has appended; appends are conditional anyway.

// Owners are the brokers that own each partition.
type Owners [api.Partitions]string

// OwnersAmong finds the owners by rendezvous hashing: every broker comes to the same
// result, and most partitions keep their owner when a broker comes or goes.
func OwnersAmong(brokers []string) *Owners {
	var owners Owners
	for p := range owners {
		var highest [sha256.Size]byte
		for _, broker := range brokers {
			if h := sha256.Sum256([]byte(broker + "/" + strconv.Itoa(p))); bytes.Compare(h[:], highest[:]) > 0 {
				owners[p], highest = broker, h
			}
		}
	}
	return &owners
}

// Of is the owner of a session.
func (o *Owners) Of(id performatives.SessionID) string { return o[api.PartitionOf(id)] }

// Owner is the broker that owns a session; elsewhere reports whether that is another one.
func (m *Membership) Owner(id performatives.SessionID) (broker string, elsewhere bool) {
	if m.o.Alone {
		return m.o.ID, false
	}
	broker = m.owners.Load().Of(id)
	return broker, broker != m.o.ID
}

// Partitions are those that this broker owns while it has peers. One that is alone
// gets every act anyway.
func (m *Membership) Partitions() (own []int) {
	m.mu.Lock()
	shared := len(m.members) > 1
	m.mu.Unlock()
	if !shared {
		return nil
	}
	for p, owner := range m.owners.Load() {
		if owner == m.o.ID {
			own = append(own, p)
		}
	}
	return own
}

// setMembers notes which brokers are alive.
func (m *Membership) setMembers(brokers []string) {
	slices.Sort(brokers)
	m.mu.Lock()
	same := slices.Equal(brokers, m.members)
	if !same {
		m.members = brokers
		m.owners.Store(OwnersAmong(brokers))
	}
	m.mu.Unlock()
	if moved := m.moved.Load(); !same && moved != nil {
		(*moved)()
	}
}

// OnMove has a function called whenever partitions have other owners. There is one.
func (m *Membership) OnMove(do func()) { m.moved.Store(&do) }
