package access

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A stranger is answered without loading the session and without waiting for what it does,
// so that the time of the answer does not tell a session of others from one that does not
// exist (PROTOCOL.md §9).

// knownStranger tells from the session list alone that the caller has no part in a session,
// and whether the list has it. A broker with peers may hear late of new participants: see
// Invited.
func (x *Access) knownStranger(c api.Caller, id performatives.SessionID) (strange, there bool) {
	if c.Operator {
		return false, false
	}
	there, part := x.List.Part(id, c.Agent)
	if part {
		return false, there
	}
	member, registered := x.Registry.Member(c.Agent)
	if ofItsOrganisation := x.Registry.Audits(c) || registered && member.Authority == performatives.AuthorityDecide; !ofItsOrganisation {
		return true, there
	}
	row, _ := x.List.Row(id)
	return !slices.ContainsFunc(row.Participants, func(a performatives.Agent) bool {
		return a.Organisation() == c.Agent.Organisation()
	}), there
}

// QueueOf is the session whose queue an act waits in: its own, but that of a session which
// does not exist for a stranger to one that does.
func (x *Access) QueueOf(id performatives.SessionID, sender performatives.Agent) performatives.SessionID {
	if strange, there := x.knownStranger(api.Caller{Agent: sender}, id); !strange || !there {
		return id
	}
	return NoneSuch()
}

// NoneSuch is a session that nobody has opened.
func NoneSuch() performatives.SessionID {
	return performatives.SessionID(uuid.Must(uuid.NewV7()).String())
}

// Stranger tells that the caller has no part in a session, or that there is none. It takes
// the same time for both: it asks the store about the session if the list does not have it,
// and otherwise about a session that nobody has opened. A caller who may open a session may
// ask about one that does not exist.
func (x *Access) Stranger(ctx context.Context, c api.Caller, id performatives.SessionID, mayOpen bool) (bool, error) {
	strange, there := x.knownStranger(c, id)
	if !strange || mayOpen && !there {
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
	last, err := x.Store.LastEntry(ctx, id)
	if err != nil {
		return false, x.trouble(id, err)
	}
	return last == 0, nil
}

func (x *Access) listLoaded() bool {
	select {
	case <-x.List.Loaded():
		return true
	default:
		return false
	}
}

// Invited looks for a session in the inbox of a caller whom the list does not name: a peer may
// have accepted a DELEGATE a moment ago, and its row comes later than the copy in the inbox.
func (x *Access) Invited(ctx context.Context, c api.Caller, id performatives.SessionID) (bool, error) {
	if x.Alone {
		return false, nil
	}
	copied, err := x.Store.Last(ctx, api.InboxStream, api.Inbox(c.Agent, id))
	if err != nil {
		return false, x.trouble(id, err)
	}
	return copied != nil, nil
}

// trouble logs an internal cause and answers without it.
func (x *Access) trouble(id performatives.SessionID, err error) error {
	x.Log.Error("looking for a session", zap.String("session", string(id)), zap.Error(err))
	return session.Busy()
}
