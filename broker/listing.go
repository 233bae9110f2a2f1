package broker

import (
	"context"

	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
)

func (b *Broker) openList(ctx context.Context) (err error) {
	o := sessionlist.Options{Store: b.store, Log: b.Log}
	if b.store.Archives() {
		o.Archive = b.archive
	}
	b.list, err = sessionlist.Open(ctx, o)
	return err
}

// row is the session's row in the session list.
func (l *cachedSession) row() sessionlist.Row {
	return sessionlist.Row{State: l.state.Phase, Participants: l.state.Participants(), Principals: l.state.Principals(), Entries: l.state.Next}
}

// rowChanged tells whether the session list has another row, or none.
func (l *cachedSession) rowChanged() bool {
	return l.rowState != l.state.Phase || l.rowParticipants != len(l.state.Participants())
}

// note updates the list and the escalation inbox in memory before an act is answered, so that
// whoever has the acceptance finds what the act did.
func (b *Broker) note(l *cachedSession, before session.Phase, participants int) {
	row := l.row()
	if before != row.State || participants != len(row.Participants) {
		b.list.Keep(l.id, row)
	}
	if before == session.Escalated || l.state.Phase == session.Escalated {
		b.approvals.Note(&l.state, b.clock(l))
	}
}

// writeRow writes the session's row if it has changed.
func (b *Broker) writeRow(ctx context.Context, l *cachedSession) error {
	if !l.rowChanged() {
		return nil
	}
	row, only := l.row(), l.unwritten
	l.unwritten = false
	if err := b.list.Write(ctx, l.id, row, only); err != nil {
		return err
	}
	l.rowState, l.rowParticipants = row.State, len(row.Participants)
	return nil
}
