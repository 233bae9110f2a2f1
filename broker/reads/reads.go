// Package reads answers what callers ask of sessions, checks, inboxes and agreements, as far as
// they may read them, and what an operator audits. To non-participants it tells nothing, whatever they ask.
//
//	r := reads.New(reads.Options{View: view, Store: s, Reader: reader, List: list, Registry: members, …})
//	page, err := r.SessionMessages(ctx, caller, api.ListMessages{Session: id})
//
// It writes nothing but consumers, and the leaves of agreements into the public log.
package reads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/broker/timers"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
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
	View  func(context.Context, performatives.SessionID, func(*Session)) error       // reads a session that is up to date, in its turn
	Moves func(s *session.State, a performatives.Agent, at time.Time) []session.Move // what an agent may send now
	// Private is what an agent's side alone may know of a session.
	Private func(ctx context.Context, s *session.State, a performatives.Agent, at time.Time) (jsontext.Value, error)
	// Unsealed says what of a session was opened to an agent, its arbiter.
	Unsealed func(ctx context.Context, s *session.State, a performatives.Agent) (api.Unsealed, error)
	Store    *store.Store
	Reader   *archive.Reader
	List     *sessionlist.List
	Registry *registry.Registry
	Terms    *registry.Schemas
	Ledger   *ledger.Ledger
	Timers   *timers.Timers
	Keys     performatives.KeyHistory // of the broker, once it has rotated its key
	Alone    bool                     // no other broker can be running
	Now      func() time.Time
	Log      *zap.Logger
}

// Reads reads sessions for callers.
type Reads struct {
	o        Options
	unlogged sync.Map // agreements whose leaf is not in the public log yet, and their sessions
}

// New reads the sessions of a broker.
func New(o Options) *Reads { return &Reads{o: o} }

// Readable reads a session if the caller may read it.
func (x *Reads) Readable(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*Session) error) error {
	return x.Existing(ctx, c, id, func(s *Session) error {
		if err := x.readable(c, s); err != nil {
			return err
		}
		return read(s)
	})
}

func (x *Reads) readable(c api.Caller, s *Session) error {
	party, has := s.State.Party(c.Agent)
	switch {
	case c.Operator || x.MayAudit(c, s) || x.DecidesIn(c, s):
		return nil
	case !has:
		return session.NoSuchSession()
	case !s.State.MayRead(c.Agent, s.At):
		return mayNotRead(s, party)
	}
	return nil
}

// Existing looks at a session that exists. What a caller without a part in it may know is
// for look to say; a known non-participant is refused before it.
func (x *Reads) Existing(ctx context.Context, c api.Caller, id performatives.SessionID, look func(*Session) error) error {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return session.NoSuchSession()
	}
	if outside, err := x.NonParticipant(ctx, c, id, false); err != nil {
		return err
	} else if outside {
		return session.NoSuchSession()
	}
	var refusal error = session.NoSuchSession()
	if err := x.o.View(ctx, id, func(s *Session) {
		if s.State.Phase != session.Idle {
			refusal = look(s)
		}
	}); errors.Is(err, transcript.ErrErased) {
		return erased(c, id)
	} else if err != nil {
		return err
	}
	return refusal
}

// erased tells an operator that a session was erased; others have no part in it.
func erased(c api.Caller, id performatives.SessionID) error {
	if !c.Operator {
		return session.NoSuchSession()
	}
	return fmt.Errorf("%w: %w", session.Refuse(session.UnknownSession, "session %s was erased: session.messages has the hashes and receipts that are left", id), transcript.ErrErased)
}

// Listed reads what session.list shows. A delegate who was asked and has not joined sees
// that too. A session with a broken transcript, or that was erased, is left out, so that the others can be listed.
func (x *Reads) Listed(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*Session) error) error {
	var err error
	if looked := x.o.View(ctx, id, func(s *Session) {
		if s.State.Phase == session.Idle {
			return // its retention is over
		}
		if c.Operator || s.State.HasPart(c.Agent) || x.MayAudit(c, s) || x.DecidesIn(c, s) {
			err = read(s)
		}
	}); looked != nil && !errors.Is(looked, cluster.ErrBroken) && !errors.Is(looked, transcript.ErrErased) {
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
func (x *Reads) OfCaller(ctx context.Context, c api.Caller, state string, before sessionlist.Place, n int) ([]sessionlist.Place, error) {
	return x.o.List.Page(ctx, x.selection(c), state, before, n)
}

// selection is of the sessions that may concern a caller.
func (x *Reads) selection(c api.Caller) sessionlist.Selection {
	member, ok := x.o.Registry.Member(c.Agent)
	switch {
	case c.Agent == "":
		return sessionlist.All()
	case x.o.Registry.ReadsAll(c) || !c.Operator && ok && member.Authority == performatives.AuthorityDecide:
		return sessionlist.Organisation(c.Agent.Organisation())
	}
	return sessionlist.One(c.Agent)
}

// An auditor is a human who may read the sessions in which its organisation takes part, and do
// nothing else. The operator says in the registry who is one. Who has a role by the rules reads as
// much, and may do what it may do anyway.

// MayAudit reports whether the caller reads what its organisation takes part in, and somebody of it
// may read the session.
func (x *Reads) MayAudit(c api.Caller, s *Session) bool {
	if !x.o.Registry.ReadsAll(c) {
		return false
	}
	org, at := c.Agent.Organisation(), s.At
	return slices.ContainsFunc(s.State.Participants(), func(a performatives.Agent) bool {
		return a.Organisation() == org && s.State.MayRead(a, at)
	})
}

// DecidesIn reports whether the caller is a human who may decide in a session. One who was
// registered after the ESCALATE and has not acted yet may.
func (x *Reads) DecidesIn(c api.Caller, s *Session) bool {
	member, ok := x.o.Registry.Member(c.Agent)
	return !c.Operator && ok && s.State.Decides(member)
}
