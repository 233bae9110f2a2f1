package server

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/reads"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/broker/turns"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// openSessions lists the sessions of an agent that are not over.
func (b *Broker) openSessions(a performatives.Agent) (open []turns.OpenSession) {
	for _, s := range b.Parts.List.Open(a) {
		open = append(open, turns.OpenSession{ID: s.Session, Participants: s.Participants})
	}
	return open
}

// participants are those of a session, as far as is known.
func (b *Broker) participants(id performatives.SessionID) (all []performatives.Agent, over bool) {
	row, _ := b.Parts.List.Row(id)
	return row.Participants, row.State.Over()
}

// moved tells those who take turns that a session went on. Of one that was erased, nothing stays in memory.
func (b *Broker) moved(id performatives.SessionID, row sessionlist.Row) {
	if row.Erased != "" {
		b.Command.Forget(id)
		if opened := b.approvals.Load(); opened != nil { // otherwise they will be read without the session's
			opened.Forget(id)
		}
	}
	b.Turns.Moved(id, row.Participants, row.State.Over())
}

// erase takes away what is kept of a session beside its transcript.
func (b *Broker) erase(ctx context.Context, s *session.State) error {
	for _, a := range s.Participants() {
		if err := b.Turns.KeepPrivate(ctx, a, s.ID, nil); err != nil {
			return err
		}
	}
	return b.Parts.Approvals.Erase(ctx, s)
}

// look is a session as it is now, if the agent has a part in it.
func (b *Broker) look(ctx context.Context, a performatives.Agent, id performatives.SessionID) (state session.State, at time.Time, err error) {
	err = b.Parts.Reads.Existing(ctx, api.Caller{Agent: a}, id, func(now *reads.Session) error {
		if !now.State.HasPart(a) && !b.Parts.Reads.DecidesIn(api.Caller{Agent: a}, now) {
			return session.NoSuchSession()
		}
		state, at = now.State, now.At
		return nil
	})
	return state, at, err
}

// messages is a page of a transcript that the agent may read.
func (b *Broker) messages(ctx context.Context, a performatives.Agent, q api.ListMessages) (api.Messages, error) {
	return b.Parts.Reads.SessionMessages(ctx, api.Caller{Agent: a}, q)
}

// private is what a side alone may know of a session.
func (b *Broker) private(ctx context.Context, s *session.State, a performatives.Agent, at time.Time) (jsontext.Value, error) {
	return b.Turns.Private(ctx, s, a, at)
}

func (b *Broker) unsealed(ctx context.Context, s *session.State, a performatives.Agent) (api.Unsealed, error) {
	return b.Parts.Approvals.UnsealedFor(ctx, s, a)
}

func (b *Broker) snapshot(ctx context.Context, c api.Caller, q api.GetSnapshot) (api.Snapshot, error) {
	return b.Parts.Reads.SessionSnapshot(ctx, c, q)
}

// member is an agent as the registry has it, or only its name.
func (b *Broker) member(a performatives.Agent) performatives.Member {
	m, _ := b.Parts.Registry.Member(a)
	m.Agent = a
	return m
}

// submit submits an envelope of an agent. Its call was let in already.
func (b *Broker) submit(ctx context.Context, a performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error) {
	type answer struct {
		accepted api.Acceptance
		err      error
	}
	answered := make(chan answer, 1)
	limits.Leave(ctx) // the act is judged in a slot of its own
	b.Command.Submit(ctx, id, a, envelope, func() {}, func(accepted api.Acceptance, err error) { answered <- answer{accepted, err} })
	select {
	case a := <-answered:
		return a.accepted, a.err
	case <-ctx.Done():
		return api.Acceptance{}, session.Busy()
	}
}

// mayRead reports whether a caller may read a session. It does not load a session that does not name
// the caller.
func (b *Broker) mayRead(ctx context.Context, c api.Caller, id performatives.SessionID) bool {
	if !b.Parts.List.Names(ctx, id, c.Agent) && !b.Parts.Registry.ReadsAll(c) {
		return false
	}
	return b.Parts.Reads.Readable(ctx, c, id, func(*reads.Session) error { return nil }) == nil
}

// lapses reports whether an escalation that nobody answers ends its pause, and not the session.
func (b *Broker) lapses(ctx context.Context, id performatives.SessionID, of escalation.ID) (lapses bool, err error) {
	err = b.Command.View(ctx, id, func(now *reads.Session) { lapses = now.State.Lapses(of) })
	return lapses, err
}

// offered are the terms of an offer, in full.
func (b *Broker) offered(ctx context.Context, id performatives.SessionID, offer string) (terms jsontext.Value, err error) {
	err = b.Command.View(ctx, id, func(now *reads.Session) {
		if o, known := now.State.Offer(offer); known {
			terms = o.Terms
		}
	})
	return terms, err
}
