package telemetry

import "time"

// A Stage is a part of the way of an act.
type Stage int

// The stages, in their order.
const (
	Wait    Stage = iota // for the acts before it in its session, and for a slot
	Load                 // the envelope is read, and its session where it is not cached
	Judge                // Step, and the checks around it
	Verify               // what the signature took beyond that
	Append               // to the transcript, until it is acknowledged, and on disk where that is waited for
	Answer               // until the answer is sent
	Deliver              // from the append until all inboxes have a copy
	stages
)

var stageNames = [stages]string{"wait", "load", "judge", "verify", "append", "answer", "deliver"}

// An Act is one that is on its way to its answer. A nil one measures nothing.
type Act struct {
	m            *Metrics
	begun, last  time.Time
	performative string
}

// Begin notes that an act has arrived.
func (m *Metrics) Begin() *Act {
	if m == nil {
		return nil
	}
	now := time.Now()
	return &Act{m: m, begun: now, last: now, performative: other}
}

// Is says what an act is, once it is read.
func (a *Act) Is(performative string) {
	if a != nil {
		a.performative = a.m.closed("performative", performative)
	}
}

// Reached says that a stage is over. An act that is judged again reaches some stages again.
func (a *Act) Reached(s Stage) {
	if a == nil {
		return
	}
	now := time.Now()
	a.m.stages[s].Observe(now.Sub(a.last).Seconds())
	a.last = now
}

// Answered says how an act was answered; the code is "" of what was not refused.
func (a *Act) Answered(outcome, code string) {
	if a == nil {
		return
	}
	a.Reached(Answer)
	a.m.actSeconds[outcome].Observe(a.last.Sub(a.begun).Seconds())
	a.m.count(a.performative, outcome, code)
}

// Unread counts an act that was refused before it was read.
func (m *Metrics) Unread(code string) {
	if m != nil {
		m.count(other, Refused, code)
	}
}

func (m *Metrics) count(performative, outcome, code string) {
	if outcome == Refused {
		code = m.closed("code", code)
	} else {
		code = none
	}
	m.acts.WithLabelValues(performative, outcome, code).Inc()
}

// Appended notes an entry that is to be delivered.
func (m *Metrics) Appended(position uint64) {
	if m != nil {
		m.undelivered.begin(position, time.Now())
	}
}

// Delivered notes that all inboxes have a copy of an entry. Only the first call for one counts.
func (m *Metrics) Delivered(position uint64) {
	if m == nil {
		return
	}
	if since, ok := m.undelivered.end(position); ok {
		m.stages[Deliver].Observe(time.Since(since).Seconds())
	}
}

// Undelivered is how long the oldest entry has waited for its copies.
func (m *Metrics) Undelivered() time.Duration {
	_, age := m.undelivered.oldest()
	return age
}
