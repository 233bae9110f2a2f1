package broker

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A session that is not in memory is read when it is asked for, which takes the longer the more
// there is of it. A stranger's question is answered without reading it, so that the time of the
// answer does not tell a session of others from one that is not there (PROTOCOL.md §9).

// strange tells from the session list alone that a session is none of the caller's business, whether it is
// there or not. A broker that is not alone may hear late of who was brought in, and reads.
func (b *Broker) strange(c api.Caller, id performatives.SessionID) (strange, there bool) {
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

// foreign tells that a stranger's question is about nothing that is there, or of others. It takes
// as long for one as for the other: it asks the store, about the session where the list has
// none, and else about one that nobody has opened. What there is would have to be found on the disk.
// Who may open a session asks about one that is not there with good reason.
func (b *Broker) foreign(ctx context.Context, c api.Caller, id performatives.SessionID, mayOpen bool) (bool, error) {
	strange, there := b.strange(c, id)
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

// fromStranger judges an act of a stranger as one in no session, in the same order. What would open
// a session is not for it.
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
