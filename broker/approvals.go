package broker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// reconcileApprovals makes the approvals of a session, and their case logs, agree with it.
func (b *Broker) reconcileApprovals(ctx context.Context, l *cachedSession) (err error) {
	if err := b.restoreEscalated(ctx, l); err != nil {
		return err
	}
	l.approvals, err = b.parts.Approvals.Reconcile(ctx, approvals.Session{
		State: &l.state, At: b.clock(l),
		Messages: func(ctx context.Context) (api.Messages, error) {
			return b.parts.Reader.Page(ctx, api.ListMessages{Session: l.id, Limit: api.MaxPage}, l.sequences, l.archived, archive.Opens{})
		},
	}, l.approvals)
	return err
}

// Reconcile makes the approvals of a session agree with it as it is now, and waits for it.
func (b *Broker) Reconcile(ctx context.Context, id performatives.SessionID) error {
	var failed error
	err := b.view(ctx, id, func(l *cachedSession) { failed = b.reconcileApprovals(b.parts.Work.Context(), l) })
	return cmp.Or(err, failed)
}

// decided counts the escalations that an entry ended.
func (b *Broker) decided(l *cachedSession, sequence uint64) {
	if b.o.Metrics == nil {
		return
	}
	for _, item := range l.state.NewestEscalations() {
		if !item.Open() && item.End.Sequence == sequence {
			b.o.Metrics.Decided(item.End.How, item.End.At.Sub(item.At))
		}
	}
}

// checkDisputeSeen refuses a reply to a dispute, and the decision of it, if the dispute has changed since
// its sender saw it.
func checkDisputeSeen(s *session.State, m *performatives.Message) error {
	inform, ok := m.Body.(*performatives.InformBody)
	if !ok {
		return nil
	}
	r, _ := inform.Reply()
	d, _ := inform.Decides()
	id, shown := cmp.Or(r.DisputeID, d.DisputeID), cmp.Or(r.ViewHash, d.ViewHash)
	dispute, known := s.Dispute(id)
	if shown == "" || !known || shown == api.DisputeShown(s, dispute) {
		return nil
	}
	return session.Refuse(session.ChainConflict, "the dispute has changed since it was shown to you: look at it again").
		With(map[string]any{"disputeId": id, "head": s.ChainHead(), "shown": api.DisputeShown(s, dispute)})
}

// What is refused because an organisation has nobody who may decide.

// mayEscalate refuses an ESCALATE that nobody may decide, or that is one too many
// of its side, its times included: each pauses the session for everybody (PROTOCOL.md §7).
func (b *Broker) mayEscalate(s *session.State, side performatives.Agent, times int, at time.Time) error {
	org := side.Organisation()
	deciders := b.parts.Registry.Deciders(org)
	switch {
	case b.o.Dev, slices.ContainsFunc(deciders, func(m performatives.Member) bool { return !s.Delegated(m.Agent, at) }):
	case len(deciders) > 0:
		return session.Refuse(session.Unauthorized, "whoever may decide for %s holds a delegation in this session, and decides nothing while that lasts: WITHDRAW it first", org).
			With(map[string]any{"rule": "no_decider", "organisation": org})
	default:
		return noDecider(org, "so nobody could answer")
	}
	if most := b.limits.Load().Escalations; times > most {
		return session.Refuse(session.RateLimited, "%s has escalated %d times in this session, and may not again: answer, or CLOSE", side, most).
			With(map[string]any{"limit": "escalations", "maxEscalations": most, "retryAfterMs": time.Hour.Milliseconds()})
	}
	return nil
}

// mayConfirm refuses to enter a session where people are to confirm what is agreed, if the
// sender's organisation has nobody who could, and to agree in it, if one has not. Who takes
// part does not confirm. Whether an organisation has such people, no non-participant learns.
func (b *Broker) mayConfirm(l *cachedSession, m *performatives.Message, next *session.State) error {
	agrees := m.Performative == performatives.Accept && next.Phase == session.Escalated
	if b.o.Dev || !next.Confirms() || next.Phase.Over() || l.state.Phase > session.Invited && !agrees {
		return nil
	}
	for _, side := range next.Sides() {
		if org := side.Organisation(); (agrees || org == m.Sender.Organisation()) && !b.couldConfirm(next, org, b.clock(l)) {
			return noDecider(org, "so nobody could confirm what is agreed")
		}
	}
	return nil
}

// mayAccept refuses to accept a delivery that people have to approve where nobody could.
func (b *Broker) mayAccept(m *performatives.Message, next *session.State, at time.Time) error {
	item := next.Escalation()
	if b.o.Dev || m.Performative != performatives.Accept || item == nil || !item.OfDelivery() || b.couldConfirm(next, item.Org, at) {
		return nil
	}
	return noDecider(item.Org, "so nobody could accept the delivery")
}

// couldConfirm reports whether an organisation has somebody who may decide, does not take part, and is no delegate.
func (b *Broker) couldConfirm(s *session.State, org performatives.Organisation, at time.Time) bool {
	return slices.ContainsFunc(b.parts.Registry.Deciders(org), func(human performatives.Member) bool {
		p, takesPart := s.Party(human.Agent)
		return !takesPart || p.Role > session.Invitee && !s.Delegated(human.Agent, at)
	})
}

func noDecider(org performatives.Organisation, so string) error {
	return session.Refuse(session.Unauthorized, "%s has no registered human who may decide, %s; an operator adds one: parley human add human://%[1]s/NAME --may-decide", org, so).
		With(map[string]any{"rule": "no_decider", "organisation": org})
}
