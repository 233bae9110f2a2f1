package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A stranger is answered without loading the session and without waiting for what it does,
// so that the time of the answer does not tell a session of others from one that does not
// exist (PROTOCOL.md §9).

// knownStranger tells from the session list alone that the caller has no part in a session,
// and whether the list has it. A broker with peers may hear late of new participants: see
// invited.
func (b *Broker) knownStranger(c api.Caller, id performatives.SessionID) (strange, there bool) {
	if c.Operator {
		return false, false
	}
	there, part := b.list.Part(id, c.Agent)
	if part {
		return false, there
	}
	member, registered := b.registry.Member(c.Agent)
	if ofItsOrganisation := b.registry.Audits(c) || registered && member.Authority == performatives.AuthorityDecide; !ofItsOrganisation {
		return true, there
	}
	row, _ := b.list.Row(id)
	return !slices.ContainsFunc(row.Participants, func(a performatives.Agent) bool {
		return a.Organisation() == c.Agent.Organisation()
	}), there
}

// queueOf is the session whose queue an act waits in: its own, but that of a session which
// does not exist for a stranger to one that does.
func (b *Broker) queueOf(id performatives.SessionID, sender performatives.Agent) performatives.SessionID {
	if strange, there := b.knownStranger(api.Caller{Agent: sender}, id); !strange || !there {
		return id
	}
	return noneSuch()
}

// noneSuch is a session that nobody has opened.
func noneSuch() performatives.SessionID {
	return performatives.SessionID(uuid.Must(uuid.NewV7()).String())
}

// stranger tells that the caller has no part in a session, or that there is none. It takes
// the same time for both: it asks the store about the session if the list does not have it,
// and otherwise about a session that nobody has opened. A caller who may open a session may
// ask about one that does not exist.
func (b *Broker) stranger(ctx context.Context, c api.Caller, id performatives.SessionID, mayOpen bool) (bool, error) {
	strange, there := b.knownStranger(c, id)
	if !strange || mayOpen && !there {
		return false, nil
	}
	if invited, err := b.invited(ctx, c, id); invited || err != nil {
		return false, err
	}
	if there {
		id = noneSuch()
	} else if !b.listLoaded() { // it may be in the archive
		return false, nil
	}
	last, err := b.store.LastEntry(ctx, id)
	if err != nil {
		return false, b.trouble("looking for a session", id, err)
	}
	return last == 0, nil
}

func (b *Broker) listLoaded() bool {
	select {
	case <-b.list.Loaded():
		return true
	default:
		return false
	}
}

// invited looks for a session in the inbox of a caller whom the list does not name: a peer may
// have accepted a DELEGATE a moment ago, and its row comes later than the copy in the inbox.
func (b *Broker) invited(ctx context.Context, c api.Caller, id performatives.SessionID) (bool, error) {
	if b.Alone {
		return false, nil
	}
	copied, err := b.store.Last(ctx, api.InboxStream, api.Inbox(c.Agent, id))
	if err != nil {
		return false, b.trouble("looking for a session", id, err)
	}
	return copied != nil, nil
}

// errNoStranger means that an act which waited as a stranger's belongs in its session's queue.
var errNoStranger = errors.New("the sender takes part in the session")

// fromStranger judges a stranger's act as one in no session, by the same order of checks.
func (b *Broker) fromStranger(m *performatives.Message, signed func() error) error {
	err := b.timely(m.Timestamp)
	if err == nil {
		err = checkBody(m)
	}
	if forged := signed(); forged != nil {
		return forged
	}
	if err != nil {
		return err
	}
	return session.NoSuchSession()
}
