package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// A Stage is a part of the way of an act.
type Stage int

// The stages, in their order.
const (
	Wait    Stage = iota // for the acts before it in its session, and for a slot
	Verify               // the envelope is read, and its signature checked
	Load                 // its session, where it is not cached
	Judge                // Step, and the checks around it
	Append               // to the transcript, until it is acknowledged, and on disk where that is waited for
	Answer               // until the answer is sent
	Deliver              // from the append until all inboxes have a copy
	stages
)

var stageNames = [stages]string{"wait", "verify", "load", "judge", "append", "answer", "deliver"}

// An Act is one that is on its way to its answer. A nil one measures nothing.
type Act struct {
	m            *Metrics // nil counts nothing
	begun, last  time.Time
	performative string

	t       *Traces         // nil has no span
	ctx     context.Context //nolint:containedctx // of the span's parent, then of the span
	span    trace.Span      // nil until it is known what the act is
	waited  time.Time       // when its turn came
	session string
}

// Begin notes that an act in a session has arrived, in the trace of a context.
func Begin(ctx context.Context, m *Metrics, t *Traces, session string) *Act {
	if m == nil && t == nil {
		return nil
	}
	now := time.Now()
	return &Act{m: m, t: t, begun: now, last: now, performative: other, ctx: ctx, session: session}
}

// Is says what an act is, once it is read: its performative, its id and its content.context.
func (a *Act) Is(performative, id string, beside []byte) {
	if a == nil {
		return
	}
	if a.m != nil {
		a.performative = a.m.closed("performative", performative)
	}
	if a.t != nil && a.span == nil {
		a.ctx = inContext(a.ctx, beside) // before the headers, which may be of who passed it on
		a.begin(performative, id)
	}
}

// Reached says that a stage is over. An act that is judged again reaches some stages again.
func (a *Act) Reached(s Stage) {
	if a == nil {
		return
	}
	now := time.Now()
	if a.m != nil {
		a.m.stages[s].Observe(now.Sub(a.last).Seconds())
	}
	switch {
	case a.span != nil:
		a.t.stage(a.ctx, s, a.last, now)
	case s == Wait:
		a.waited = now
	}
	a.last = now
}

// Answered says how an act was answered; the code is "" of what was not refused.
func (a *Act) Answered(outcome, code string) {
	if a == nil {
		return
	}
	a.Reached(Answer)
	if a.m != nil {
		a.m.actSeconds[outcome].Observe(a.last.Sub(a.begun).Seconds())
		a.m.count(a.performative, outcome, code)
	}
	if a.t != nil {
		a.end(outcome, code)
	}
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
