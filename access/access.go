// Package access reads sessions for those who may read them. To strangers it tells nothing, whatever they ask.
package access

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/store"
)

// A Session is a session as it is in its turn.
type Session struct {
	State     session.State
	At        time.Time // by the broker's clock
	Sequences []uint64  // of its entries in their stream
	Archived  bool      // it is in the archive and does not change any more

	Recent func(sequence uint64) []byte // an entry that need not be read again, or nil
}

// Options say where sessions are, and who asks.
type Options struct {
	View     func(context.Context, performatives.SessionID, func(*Session)) error // reads a session that is up to date, in its turn
	Store    *store.Store
	List     *sessionlist.List
	Registry Registry
	Alone    bool // no other broker can be running
	Log      *zap.Logger
}

// A Registry knows who asks.
type Registry interface {
	Member(performatives.Agent) (performatives.Member, bool)
	Audits(api.Caller) bool // the caller is an auditor
}

// Access reads sessions for callers.
type Access struct{ Options }

// New gives access to sessions.
func New(o Options) *Access { return &Access{o} }

// Readable reads a session if the caller may read it.
func (x *Access) Readable(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*Session) error) error {
	return x.Existing(ctx, c, id, func(s *Session) error {
		party, has := s.State.Party(c.Agent)
		switch {
		case x.MayAudit(c, s) || x.DecidesIn(c, s):
			return read(s)
		case !c.Operator && !has:
			return session.NoSuchSession()
		case !c.Operator && !s.State.MayRead(c.Agent, s.At):
			return mayNotRead(s, party)
		default:
			return read(s)
		}
	})
}

// Existing looks at a session that exists. What a caller without a part in it may know is
// for look to say; a known stranger is refused before it.
func (x *Access) Existing(ctx context.Context, c api.Caller, id performatives.SessionID, look func(*Session) error) error {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return session.NoSuchSession()
	}
	if foreign, err := x.Stranger(ctx, c, id, false); err != nil {
		return err
	} else if foreign {
		return session.NoSuchSession()
	}
	var refusal error = session.NoSuchSession()
	if err := x.View(ctx, id, func(s *Session) {
		if s.State.Phase != session.Idle {
			refusal = look(s)
		}
	}); err != nil {
		return err
	}
	return refusal
}

// Listed reads what session.list shows. A delegate who was asked and has not joined sees
// that too.
func (x *Access) Listed(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*Session) error) error {
	var err error
	if looked := x.View(ctx, id, func(s *Session) {
		if s.State.Phase == session.Idle {
			return // its retention is over
		}
		if c.Operator || s.State.HasPart(c.Agent) || x.MayAudit(c, s) || x.DecidesIn(c, s) {
			err = read(s)
		}
	}); looked != nil {
		return looked
	}
	return err
}

// mayNotRead tells a delegate why it cannot read: not yet, or no longer.
func mayNotRead(s *Session, p session.Party) error {
	grant := s.State.GrantsOf(p, s.At)[0]
	if grant.Status == delegation.Declined {
		return session.NoSuchSession()
	}
	if grant.Status == delegation.Offered {
		return session.Refuse(session.AuthorityExceeded, "join the session first: ACCEPT the DELEGATE %s, or send what its authority allows", grant.ID)
	}
	return session.Refuse(session.AuthorityExceeded, "your delegation in this session has ended")
}

// OfCaller lists at most n sessions that may concern a caller, as sessionlist.Page does.
func (x *Access) OfCaller(ctx context.Context, c api.Caller, state, before string, n int) ([]performatives.SessionID, error) {
	selection := sessionlist.One(c.Agent)
	member, ok := x.Registry.Member(c.Agent)
	switch {
	case c.Agent == "":
		selection = sessionlist.All()
	case x.Registry.Audits(c) || !c.Operator && ok && member.Authority == performatives.AuthorityDecide:
		selection = sessionlist.Organisation(c.Agent.Organisation())
	}
	return x.List.Page(ctx, selection, state, before, n)
}
