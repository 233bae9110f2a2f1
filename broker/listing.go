package broker

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// row is the session's row in the session list at a time.
func (l *cachedSession) row(at time.Time) sessionlist.Row {
	return sessionlist.Row{
		State: l.state.Phase, Participants: l.state.Participants(), Principals: l.state.Principals(), Answered: whoAnswered(&l.state), Entries: l.state.Next,
		Mode: modeOf(&l.state), Owed: sessionlist.Owed(l.state.Unmet()), Dues: duesOf(&l.state, at),
		Opened: sessionlist.OpenedApart(l.id, l.state.Created),
	}
}

// duesOf is what the row has of a session's open obligations and of its disputes.
func duesOf(s *session.State, at time.Time) *sessionlist.Dues {
	all, disputes := api.OpenObligations(s, at), api.DisputeRows(s)
	if len(all) == 0 && len(disputes) == 0 {
		return nil
	}
	dues := &sessionlist.Dues{Purpose: api.ShortPurpose(s), Escalated: slices.Sorted(s.Deciding()), Obligations: all, Disputes: disputes}
	if p, _ := s.Party(s.Arbiter().Agent); p.Role == session.Arbiter {
		dues.Arbiter = p.Agent
	}
	if s.ClockStopped(at) {
		dues.Stopped = &sessionlist.Stopped{Since: at, Until: s.ClockRuns(at)}
	}
	return dues
}

func modeOf(s *session.State) string {
	if s.Mode == nil {
		return ""
	}
	return s.Mode.Name
}

// whoAnswered are the invitees who have answered, while others have not.
func whoAnswered(s *session.State) (all []performatives.Agent) {
	if s.Phase != session.Invited {
		return nil
	}
	for _, a := range s.Participants()[1:s.Principals()] {
		if p, _ := s.Party(a); p.Answered {
			all = append(all, a)
		}
	}
	return all
}

// A rowMark tells one row of a session from the next.
type rowMark struct {
	state                  session.Phase
	participants, answered int
	unmet                  session.Unmet
	obligationsChanged     uint64
	disputesChanged        uint64
	escalated              int // organisations
}

func markOf(s *session.State) rowMark {
	escalated := 0
	for range s.Deciding() {
		escalated++
	}
	return rowMark{s.Phase, len(s.Participants()), len(whoAnswered(s)), s.Unmet(), s.ObligationsChanged(), s.DisputesChanged(), escalated}
}

// rowChanged reports whether the session list has another row, or none.
func (l *cachedSession) rowChanged() bool { return l.listed != markOf(&l.state) }

// note updates the list and the escalation inbox in memory before an act is answered, so that
// whoever has the acceptance finds what the act did.
func (b *Broker) note(l *cachedSession, before rowMark) {
	if before != markOf(&l.state) {
		b.parts.List.Keep(l.id, l.row(b.clock(l)))
	} else {
		b.parts.List.Moved(l.id, sessionlist.Row{State: l.state.Phase, Participants: l.state.Participants()})
	}
	if before.state == session.Escalated || l.state.Phase == session.Escalated || len(l.state.Last.Disputes) > 0 {
		b.parts.Approvals.Note(&l.state, b.clock(l))
	}
}

// writeRow writes the session's row if it has changed.
func (b *Broker) writeRow(ctx context.Context, l *cachedSession) error {
	if !l.rowChanged() {
		return nil
	}
	row, only := l.row(b.clock(l)), l.unwritten
	l.unwritten = false
	if err := b.parts.List.Write(ctx, l.id, row, only); err != nil {
		return err
	}
	l.listed = markOf(&l.state)
	return nil
}
