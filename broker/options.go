package broker

import (
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// ClockSkew is how far an envelope's timestamp may be from the broker's clock.
const ClockSkew = 5 * time.Minute

// ackTimeout is how long the broker waits for an entry or a copy of one to be
// acknowledged before it looks what happened.
const ackTimeout = 5 * time.Second

// Options say how the command works.
type Options struct {
	Signer performatives.Signer // signs receipts; all brokers of one installation share it
	Dev    bool                 // anyone is anyone: unsigned acts are accepted, who is unknown is registered
	Alone  bool                 // no other broker can be running: its work is taken over at once

	Modes  session.Modes        // nil is all
	Policy performatives.Policy // zero fields are the defaults of PROTOCOL.md
	Limits limits.Limits        // of one principal; zero fields are defaults

	// Keys are all keys that have signed receipts, up to Signer's, once it has been rotated. What was signed for
	// one of them was signed for this broker.
	Keys performatives.KeyHistory

	Lag     time.Duration      // of timers and session rows behind transcripts; 0 is 2 s, below zero none
	Metrics *telemetry.Metrics // nil counts nothing
	Traces  *telemetry.Traces  // nil exports nothing

	Log *zap.Logger      // nil is silent
	Now func() time.Time // nil is time.Now
}

// WithDefaults fills in the defaults.
func (o Options) WithDefaults() Options {
	or := func(ms *int64, d time.Duration) {
		if *ms == 0 {
			*ms = d.Milliseconds()
		}
	}
	p := &o.Policy
	p.Format = performatives.Format
	or(&p.InvitationTimeout, session.DefaultInvitationTimeout)
	or(&p.MaxDuration, session.DefaultMaxDuration)
	or(&p.EscalationLow, escalation.DefaultLow)
	or(&p.EscalationMedium, escalation.DefaultMedium)
	or(&p.EscalationHigh, escalation.DefaultHigh)
	or(&p.EscalationCritical, escalation.DefaultCritical)
	or(&p.MaxPaused, escalation.MaxPaused)
	or(&p.ParkedTimeout, session.DefaultParked)
	o.Limits = o.Limits.WithDefaults()
	if o.Modes == nil {
		o.Modes = modes.All()
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	// Transcripts have wall time only, and a replay must come to the same: times
	// without a monotonic reading compare and subtract by the wall clock.
	o.Now = func() time.Time { return now().Round(0) }
	return o
}
