package broker

import (
	"context"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// afterAnEnd is when to ask again, where nobody knows when there will be room.
const afterAnEnd = 5 * time.Second

// fits refuses an act for which the transcript has no room. What ends the session, or
// the pause of one, is accepted in a full one too.
func (b *Broker) fits(l *cachedSession, m *performatives.Message, bytes int) error {
	most := b.limits.Load().SessionBytes
	left := max(0, most-l.bytes)
	if bytes <= left || m.Performative == performatives.Close {
		return nil
	}
	if body, ok := m.Body.(*performatives.InformBody); ok && l.state.Escalation() != nil {
		if _, rules := body.Ruling(); rules {
			return nil
		}
	}
	return session.Refuse(session.TooLarge, "a session has at most %d bytes here, this act takes %d, and %d are left: send less, or CLOSE and open another", most, bytes, left).
		With(map[string]int{"maxBytes": most, "bytesLeft": left})
}

// roomFor limits the participants of a session, the sessions that an inviter has open and the
// invitations that another organisation has to answer to its own, and refuses what nobody could
// decide. It comes last: only an act that would be accepted is limited. leave says that the act
// was appended, or was not.
func (b *Broker) roomFor(ctx context.Context, l *cachedSession, m *performatives.Message, next *session.State) (leave func(), err error) {
	most := b.limits.Load().Participants
	if err := b.mayConfirm(l, m, next); err != nil {
		return nil, err
	}
	if err := b.mayAccept(m, next, b.clock(l)); err != nil {
		return nil, err
	}
	for other := range counterparts(m.Sender, next.Participants()) {
		if err := b.accounts.Between(m.Sender.Organisation(), other).Admit(0, 0); err != nil {
			return nil, err
		}
	}
	switch m.Performative {
	case performatives.Propose:
		if l.state.Phase != session.Idle {
			break
		}
		if n := next.Principals(); n > most {
			return nil, tooMany("principals", n, most)
		}
		if err := b.neverEnded(ctx, l.id); err != nil {
			return nil, err
		}
		return b.reserve(l.id, next)
	case performatives.Delegate:
		if body, ok := m.Body.(*performatives.DelegateBody); ok && b.parts.Registry.RefuseAuditors(api.Caller{Agent: body.TargetAgent}) != nil {
			return nil, session.Refuse(session.Unauthorized, "%s is an auditor, who reads, and does nothing else: delegate to somebody else", body.TargetAgent)
		}
		if n := len(next.Participants()) - next.Principals(); n > most && len(next.Participants()) > len(l.state.Participants()) {
			return nil, tooMany("delegates and approvers", n, most)
		}
	case performatives.Escalate:
		side := next.Escalation().Principal
		return func() {}, b.mayEscalate(next, side, next.EscalationsOf(side), b.clock(l))
	default:
	}
	return func() {}, nil
}

// neverEnded refuses the id of a session that is no longer kept: the public log has its end, and perhaps agreements, and
// would prove nothing of another session's.
func (b *Broker) neverEnded(ctx context.Context, id performatives.SessionID) error {
	if !b.expires.Load() {
		return nil
	}
	_, ended, err := b.parts.Ledger.Ended(ctx, id)
	if ended {
		return session.NoSuchSession()
	}
	return err
}

// counterparts counts by organisation those who are not of the sender's.
func counterparts(sender performatives.Agent, participants []performatives.Agent) map[performatives.Organisation]int {
	counts, own := map[performatives.Organisation]int{}, sender.Organisation()
	for _, a := range participants {
		if of := a.Organisation(); of != own {
			counts[of]++
		}
	}
	return counts
}

// The limits that no account has.
const (
	limitSessions    = "sessions"
	limitInvitations = "invitations"
)

// LimitNames are those of all limits that rate_limited names.
func LimitNames() []string { return append(limits.Names(), limitSessions, limitInvitations) }

// reserve makes room for a session that is about to be opened.
func (b *Broker) reserve(id performatives.SessionID, next *session.State) (release func(), err error) {
	opening := sessionlist.Row{State: next.Phase, Participants: next.Participants(), Principals: next.Principals()}
	most := b.limits.Load()
	quota := sessionlist.Quota{Sessions: most.Sessions, Invitations: most.Invitations}
	release, used, ok := b.parts.List.Reserve(id, opening, quota)
	switch {
	case ok:
		return release, nil
	case used.Sessions >= quota.Sessions:
		b.o.Metrics.Limited(limitSessions)
		err = api.RateLimited(limitSessions, afterAnEnd, "%d sessions that you opened are not over, and at most %d may be at a time: CLOSE some", used.Sessions, quota.Sessions)
	default:
		b.o.Metrics.Limited(limitInvitations)
		err = api.RateLimited(limitInvitations, afterAnEnd, "%d invitations of your organisation to %s are not answered, and at most %d may be at a time: WITHDRAW some, or wait", used.Invitations, used.To, quota.Invitations)
	}
	b.tellLimited(opening.Participants[0], id, err)
	return nil, err
}

// tooMany is final: the same act will not be accepted later.
func tooMany(who string, n, most int) error {
	return session.Refuse(session.TooLarge, "the session would have %d %s; here it has at most %d", n, who, most).
		With(map[string]int{"maxParticipants": most})
}
