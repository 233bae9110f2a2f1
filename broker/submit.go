package broker

import (
	"cmp"
	"context"
	"errors"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Admit lets one request of so many bytes of a principal in, as fast and as many at a time as its
// limits allow, or refuses it; id is "" for a call. release says that it was answered.
func (b *Broker) Admit(sender performatives.Agent, id performatives.SessionID, size int) (release func(), err error) {
	account := b.accounts.Of(sender)
	if release, err = account.Hold(limits.InFlight, 1); err == nil {
		if err = account.Admit(1, size); err != nil {
			release()
		}
	}
	if err != nil {
		b.tellLimited(sender, cmp.Or(id, noSession), err)
		if id != "" {
			b.o.Metrics.Unread(string(session.CodeOf(err)))
		}
	}
	return release, err
}

// Charge charges requests that a gateway answers by itself, or refuses them. It refuses whoever owes
// something, of no requests as well.
func (b *Broker) Charge(caller performatives.Agent, requests int) error {
	err := b.accounts.Of(caller).Admit(requests, 0)
	if err != nil {
		b.tellLimited(caller, noSession, err)
	}
	return err
}

// freeOfCopy is what a copy of an act is free of charge, so that ordinary acts cost as many bytes in
// sessions of any size.
const freeOfCopy = 4 << 10

// chargeCopies charges for the inbox copies of an act that was accepted.
func (b *Broker) chargeCopies(sender performatives.Agent, size int, to []performatives.Agent) {
	account := b.accounts.Of(sender)
	account.Spend(limits.Items, float64(len(to)))
	account.Spend(limits.BytesIn, float64(len(to)*max(0, size-freeOfCopy)))
	for other, copies := range counterparts(sender, to) {
		b.accounts.Between(sender.Organisation(), other).Spend(limits.Items, float64(copies))
	}
}

// Isolated reports that acts must not be judged now: this broker may have been taken for dead.
func (b *Broker) Isolated() bool { return b.parts.Members.Isolated() }

// Submit judges an envelope when its session's turn comes, and answers once, after
// release. Side effects follow the answer. Of ctx only the trace counts.
func (b *Broker) Submit(ctx context.Context, id performatives.SessionID, sender performatives.Agent, envelope []byte, release func(), answer func(api.Acceptance, error)) {
	b.submit(telemetry.Begin(ctx, b.o.Metrics, b.o.Traces, string(id)), b.parts.Reads.QueueOf(id, sender), id, sender, envelope, release, answer)
}

// submit judges an envelope when the turn of a queue comes.
func (b *Broker) submit(act *telemetry.Act, queue, id performatives.SessionID, sender performatives.Agent, envelope []byte, release func(), answer func(api.Acceptance, error)) {
	queued := b.sessions.run(queue, func(ctx context.Context, l *cachedSession) {
		moved := false
		defer func() {
			if !moved {
				release()
			}
		}()
		l.slot, l.act = cmp.Or(b.accounts.LargeJudged(len(envelope)), b.judging).Enter(sender), act
		defer func() { l.act = nil }()
		defer l.slot.Release()
		act.Reached(telemetry.Wait)
		accepted, err := b.admit(ctx, l, id, sender, envelope)
		if moved = errors.Is(err, errParticipant); moved {
			b.submit(act, id, id, sender, envelope, release, answer)
			return
		}
		if n := len(l.unapplied); err == nil && n > 0 {
			b.chargeCopies(sender, len(envelope), l.unapplied[n-1].to)
		}
		release() // whoever has the answer may ask the next
		answer(accepted, err)
		act.Answered(outcome(accepted, err))
		var refusal *session.Refusal
		if errors.As(err, &refusal) {
			b.tellRefused(id, sender, refusal)
		}
		if err == nil {
			b.reaches(answered)
		}
		b.finish(ctx, l)
	})
	if !queued {
		release()
		answer(api.Acceptance{}, session.Busy())
		act.Answered(outcome(api.Acceptance{}, session.Busy()))
	}
}

// finish applies the side effects of what was appended; where it is not known whether it was, it finds out later.
func (b *Broker) finish(ctx context.Context, l *cachedSession) {
	switch {
	case len(l.unapplied) > 0:
		b.applySideEffects(ctx, l)
	case l.indeterminate != nil:
		b.later(l, ackTimeout)
	}
}

// outcome is how an act was answered, for the metrics.
func outcome(accepted api.Acceptance, err error) (how, code string) {
	switch {
	case err != nil:
		return telemetry.Refused, string(session.CodeOf(err))
	case accepted.Duplicate:
		return telemetry.Repeated, ""
	}
	return telemetry.Accepted, ""
}
