package telemetry

import "time"

// Looked notes that a session was looked for in the cache.
func (m *Metrics) Looked(hit bool) {
	if m != nil {
		m.lookups[index(hit)].Inc()
	}
}

// Failed notes that a side effect failed.
func (m *Metrics) Failed(effect string) {
	if m != nil {
		m.effects.WithLabelValues(m.closed("effect", effect)).Inc()
	}
}

// Stuck notes since when the side effects of a session fail; Unstuck, that they are applied.
func (m *Metrics) Stuck(session string, since time.Time) {
	if m != nil {
		m.stuck.begin(session, since)
	}
}

// Unstuck ends what Stuck noted.
func (m *Metrics) Unstuck(session string) {
	if m != nil {
		m.stuck.end(session)
	}
}

// Decided notes how an escalation ended, and after how long.
func (m *Metrics) Decided(how string, after time.Duration) {
	if m != nil {
		m.decisions.WithLabelValues(m.closed("decision", how)).Observe(max(0, after).Seconds())
	}
}

// Limited notes a refusal by a limit.
func (m *Metrics) Limited(limit string) {
	if m != nil {
		m.limits.WithLabelValues(m.closed("limit", limit)).Inc()
	}
}

// Recovered notes that the work of another broker was recovered, or could not be.
func (m *Metrics) Recovered(err error) {
	if m != nil {
		m.recoveries[index(err == nil)].Inc()
	}
}

// HandedOver notes that peers were asked to apply the side effects of a session.
func (m *Metrics) HandedOver() {
	if m != nil {
		m.handOvers.Inc()
	}
}

// Fsynced notes an fsync.
func (m *Metrics) Fsynced(took time.Duration) {
	if m != nil {
		m.fsyncs.Observe(took.Seconds())
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}
