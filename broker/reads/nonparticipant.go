package reads

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A non-participant is answered without loading the session and without waiting for what it does,
// so that the time of the answer does not tell a session of others from one that does not
// exist (PROTOCOL.md §9).

// knownNonParticipant reports from the session list alone that the caller has no part in a session,
// and whether the list has it. A broker with peers may learn late of new participants: see
// Invited.
func (x *Reads) knownNonParticipant(c api.Caller, id performatives.SessionID) (outside, there bool) {
	if c.Operator {
		return false, false
	}
	there, part := x.o.List.Part(id, c.Agent)
	if part {
		return false, there
	}
	member, registered := x.o.Registry.Member(c.Agent)
	if ofItsOrganisation := x.o.Registry.ReadsAll(c) || registered && member.Authority == performatives.AuthorityDecide; !ofItsOrganisation {
		return true, there
	}
	row, _ := x.o.List.Row(id)
	return !slices.ContainsFunc(row.Participants, func(a performatives.Agent) bool {
		return a.Organisation() == c.Agent.Organisation()
	}), there
}

// QueueOf is the session whose queue an act waits in: its own, but that of a session which
// does not exist for a non-participant to one that does.
func (x *Reads) QueueOf(id performatives.SessionID, sender performatives.Agent) performatives.SessionID {
	if outside, there := x.knownNonParticipant(api.Caller{Agent: sender}, id); !outside || !there {
		return id
	}
	return NoneSuch()
}

// NoneSuch is a session that nobody has opened.
func NoneSuch() performatives.SessionID {
	return performatives.SessionID(uuid.Must(uuid.NewV7()).String())
}

// NonParticipant reports that the caller has no part in a session, or that there is none. It takes
// the same time for both: it asks the store about the session if the list does not have it,
// and otherwise about a session that nobody has opened. A caller who may open a session may
// ask about one that does not exist.
func (x *Reads) NonParticipant(ctx context.Context, c api.Caller, id performatives.SessionID, mayOpen bool) (bool, error) {
	outside, there := x.knownNonParticipant(c, id)
	if !outside || mayOpen && !there {
		return false, nil
	}
	if invited, err := x.Invited(ctx, c, id); invited || err != nil {
		return false, err
	}
	if there {
		id = NoneSuch()
	} else if !x.listLoaded() { // it may be in the archive
		return false, nil
	}
	last, err := x.o.Store.LastEntry(ctx, id)
	if err != nil {
		return false, x.trouble(id, err)
	}
	return last == 0, nil
}

func (x *Reads) listLoaded() bool {
	select {
	case <-x.o.List.Loaded():
		return true
	default:
		return false
	}
}

// Invited looks for a session in the inbox of a caller whom the list does not name: a peer may
// have accepted a DELEGATE a moment ago, and its row comes later than the copy in the inbox.
func (x *Reads) Invited(ctx context.Context, c api.Caller, id performatives.SessionID) (bool, error) {
	if x.o.Alone {
		return false, nil
	}
	copied, err := x.o.Store.Last(ctx, api.InboxStream, api.Inbox(c.Agent, id))
	if err != nil {
		return false, x.trouble(id, err)
	}
	return copied != nil, nil
}

// trouble logs an internal cause and answers without it.
func (x *Reads) trouble(id performatives.SessionID, err error) error {
	x.o.Log.Error("looking for a session", zap.String("session", string(id)), zap.Error(err))
	return session.Busy()
}
