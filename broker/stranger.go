package broker

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Loading a session takes the longer the more entries it has. A stranger is answered
// without loading it, so that the time of the answer does not tell a session of others
// from one that does not exist (PROTOCOL.md §9).

// knownStranger tells from the session list alone that the caller has no part in a session,
// and whether the list has it. A broker with peers may hear late of new participants, so it
// loads the session.
func (b *Broker) knownStranger(c api.Caller, id performatives.SessionID) (strange, there bool) {
	if c.Operator || !b.Alone {
		return false, false
	}
	row, there := b.list.Row(id)
	if slices.Contains(row.Participants, c.Agent) {
		return false, there
	}
	member, registered := b.registry.Member(c.Agent)
	ofItsOrganisation := b.registry.Audits(c) || registered && member.Authority == performatives.AuthorityDecide
	return !ofItsOrganisation || !slices.ContainsFunc(row.Participants, func(a performatives.Agent) bool {
		return a.Organisation() == c.Agent.Organisation()
	}), there
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
	other, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	if there {
		id = performatives.SessionID(other.String())
	}
	last, err := b.store.LastEntry(ctx, id)
	if err != nil {
		return false, b.trouble("looking for a session", id, err)
	}
	return last == 0, nil
}

// fromStranger judges a stranger's act as one in no session, by the same order of checks.
// opens tells that the act would open a session, which is not for this function.
func (b *Broker) fromStranger(m *performatives.Message, signed func() error) (opens bool, refusal error) {
	err := b.timely(m.Timestamp)
	if err == nil {
		err = checkBody(m)
	}
	if body, is := m.Body.(*performatives.ProposeBody); err == nil && is && body.Type == performatives.SessionInvitation {
		return true, nil
	}
	if forged := signed(); forged != nil {
		return false, forged
	}
	if err != nil {
		return false, err
	}
	return false, session.NoSuchSession()
}
