package cluster

import "time"

const (
	isolatedAfter = 2500 * time.Millisecond // sooner than peers suspect this broker
	rejoinPause   = time.Second             // for refusing what was queued while it was isolated

	// reconnectAfter is longer than an election takes.
	reconnectAfter = 10 * time.Second
)

// renewed notes that the record was acknowledged, as it was sent at a time.
func (m *Membership) renewed(sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.acked.IsZero() && time.Since(m.acked) > isolatedAfter {
		m.rejoined = time.Now().Add(rejoinPause)
	}
	m.acked = sent
}

// reconnect leaves a server that has acknowledged nothing for too long. It may be cut off from the
// other servers, and still be there for whoever is connected to it.
func (m *Membership) reconnect() {
	if m.o.Alone || m.o.Reconnect == nil {
		return
	}
	m.mu.Lock()
	now := time.Now()
	due := now.Sub(m.acked) > reconnectAfter && now.Sub(m.reconnected) > reconnectAfter
	if due {
		m.reconnected = now
	}
	m.mu.Unlock()
	if due {
		m.o.Reconnect()
	}
}

// dead reports whether a peer has sent no heartbeat for too long. Do not declare peers
// dead while our own heartbeat fails: theirs could not be read either, so they get
// as long again.
func (m *Membership) dead(p peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.o.Now().Sub(p.at) > SuspectAfter && time.Since(m.rejoined) > SuspectAfter
}

// Isolated reports whether this broker was stalled, or cut off, for so long that its
// peers may have recovered its work. Reject requests that were queued meanwhile:
// their senders may have sent them again, and another broker may have refused them.
func (m *Membership) Isolated() bool {
	if m.o.Alone {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	return now.Sub(m.acked) > isolatedAfter || now.Before(m.rejoined)
}
