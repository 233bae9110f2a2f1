package broker

import (
	"context"
	"slices"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A session that is not in memory is read when it is asked for, which takes the longer the more
// there is of it. A stranger's question is answered without reading it, so that the time of the
// answer does not tell a session of others from one that is not there (PROTOCOL.md §9).

// foreign tells from the index alone that a session is there and none of the caller's business. A
// broker that is not alone may hear late of who was brought in, and reads.
func (b *Broker) foreign(c caller, id performatives.SessionID) bool {
	if c.operator || !b.Alone {
		return false
	}
	b.index.mu.RLock()
	line, there := b.index.lines.line(id)
	b.index.mu.RUnlock()
	if !there || slices.Contains(line.Parties, c.agent) {
		return false
	}
	member, registered := b.registry.member(c.agent)
	ofItsOrganisation := b.audits(c) || registered && member.Authority == performatives.AuthorityDecide
	return !ofItsOrganisation || !slices.ContainsFunc(line.Parties, func(a performatives.Agent) bool {
		return a.Organisation() == c.agent.Organisation()
	})
}

// asIfNone does what is done about a session that is not there: it asks the store.
func (b *Broker) asIfNone(ctx context.Context, id performatives.SessionID) error {
	if _, err := b.log.last(ctx, id); err != nil {
		return b.trouble("reading a session", id, err)
	}
	return session.NoSuchSession()
}

// fromStranger judges an act in a session of others as one in none, in the same order. What would
// open a session is not for it: there, the session is in the way.
func (b *Broker) fromStranger(ctx context.Context, id performatives.SessionID, m *performatives.Message, signed func() error) (opens bool, refusal error) {
	none := b.asIfNone(ctx, id)
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
	return false, none
}
