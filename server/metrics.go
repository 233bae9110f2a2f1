package server

import (
	"cmp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// newMetrics makes the families of /metrics, with what their labels may be.
func newMetrics() *telemetry.Metrics {
	v := telemetry.Vocabulary{
		SideEffects: broker.SideEffects(), Limits: broker.LimitNames(),
		Decisions: []string{performatives.Approved, performatives.Denied, performatives.Modified, performatives.Guidance, escalation.EndClosed, escalation.EndExpired},
	}
	for _, act := range performatives.All() {
		v.Acts = append(v.Acts, act.String())
	}
	for _, code := range session.Codes() {
		v.Codes = append(v.Codes, string(code))
	}
	return telemetry.New(v, api.Version)
}

// metrics are the monitor's; nil without one.
func (m *monitor) metrics() *telemetry.Metrics {
	if m == nil {
		return nil
	}
	return m.families
}

// readMetrics adds what a server that has started has in memory.
func readMetrics(m *telemetry.Metrics, s *Server, data string) {
	b := s.Broker
	m.Gauge("sessions", "Sessions in the list, which is the same at every broker. The mode is unknown of those that an older version listed.", []string{"state", "mode"}, func(set telemetry.Set) {
		readSessions(b, set)
	})
	m.Gauge("obligations", "Open obligations of all sessions, by where they stand.", []string{"status"}, func(set telemetry.Set) {
		_, owed := b.Parts.List.Counts()
		set(float64(owed.Due), session.ObligationDue)
		set(float64(owed.Asserted), session.ObligationAsserted)
		set(float64(owed.Overdue), "overdue")
		set(float64(owed.Disputed), session.ObligationDisputed)
	})
	m.Gauge("escalations", "Escalations that wait for a decision, by whether an answer is due later, within 15 minutes (soon) or overdue.", []string{"due"}, func(set telemetry.Set) {
		later, soon, overdue := b.Parts.Approvals.Waiting(b.Options.Now())
		set(float64(later), "later")
		set(float64(soon), "soon")
		set(float64(overdue), "overdue")
	})
	m.Gauge("lag_seconds", "How long the oldest has waited: an entry for its inbox copies, a leaf for a checkpoint, a timer for its session.", []string{"of"}, func(set telemetry.Set) {
		_, _, log := b.Parts.Ledger.Leaves()
		set(m.Undelivered().Seconds(), "inbox")
		set(log.Seconds(), "log")
		set(max(0, b.Parts.Timers.Late(b.Options.Now()).Seconds()), "timer")
	})
	m.Gauge("unapplied_entries", "Entries whose side effects this broker has not all applied.", nil, func(set telemetry.Set) {
		set(float64(b.Parts.Members.Counts().Unapplied))
	})
	m.Gauge("queue_length", "What waits: acts and reads for their session, acts and checks of terms for a slot, calls for proposals, forwarded acts, delayed refusals.", []string{"queue"}, func(set telemetry.Set) {
		n := b.Command.Counts()
		_, forwarded := b.Gateway.Forwarded()
		for queue, length := range map[string]int{
			"session": n.Queued, "judge": n.Judging, "check": n.Checking, "call": b.assessing.Waiting(), "forward": forwarded, "refusal": b.Gateway.Delayed(),
		} {
			set(float64(length), queue)
		}
	})
	m.Gauge("cache_sessions", "Sessions that are cached.", nil, func(set telemetry.Set) { set(float64(b.Command.Counts().Cached)) })
	m.Gauge("partitions_owned", "Partitions of the sessions that this broker owns, of 128.", nil, func(set telemetry.Set) {
		set(float64(b.Parts.Members.Counts().Partitions))
	})
	m.Gauge("brokers", "Brokers that share the work, as this one sees them. Those that are suspected are being recovered.", []string{"state"}, func(set telemetry.Set) {
		n := b.Parts.Members.Counts()
		set(float64(n.Alive), "alive")
		set(float64(n.Recovering), "suspected")
	})
	m.Gauge("store_servers", "Servers that keep the transcripts, by whether their leader reaches them.", []string{"state"}, func(set telemetry.Set) {
		s.probe.unready() // which asks, unless it just has
		are := b.Parts.Store.Servers()
		set(float64(are.There), "there")
		set(float64(len(are.Away)), "away")
	})
	m.Gauge("log_leaves", "Leaves of the public log: those that a published checkpoint has, and those that wait for one.", []string{"state"}, func(set telemetry.Set) {
		published, waiting, _ := b.Parts.Ledger.Leaves()
		set(float64(published), "published")
		set(float64(waiting), "waiting")
	})
	if s.certificate != nil {
		m.Gauge("certificate_expires_seconds", "Unix time at which the certificate of --tls-cert expires.", nil, func(set telemetry.Set) {
			set(float64(s.certificate.expires().Unix()))
		})
	}
	m.Gauge("disk_bytes", "The file system of --data.", []string{"state"}, func(set telemetry.Set) {
		if free, size, ok := diskOf(data); ok {
			set(float64(free), "free")
			set(float64(size-free), "used")
		}
	})
}

func readSessions(b *Broker, set telemetry.Set) {
	kinds, _ := b.Parts.List.Counts()
	counts := map[[2]string]int{}
	for kind, n := range kinds {
		mode := cmp.Or(kind.Mode, "unknown")
		if _, known := b.Options.Modes[mode]; !known && kind.Mode != "" {
			mode = "other"
		}
		counts[[2]string{kind.State.String(), mode}] += n
	}
	for _, phase := range session.Phases()[session.Invited:] {
		for mode := range b.Options.Modes {
			counts[[2]string{phase.String(), mode}] += 0 // none is a figure, too
		}
	}
	for labels, n := range counts {
		set(float64(n), labels[0], labels[1])
	}
}
