package broker

import (
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An auditor is a human who may read the sessions in which its organisation takes part, and do
// nothing else. The operator says in the registry who is one.

// mayAudit tells whether the caller is an auditor, and somebody of its organisation may read
// the session.
func (b *Broker) mayAudit(c api.Caller, l *cachedSession) bool {
	if !b.registry.Audits(c) {
		return false
	}
	org, at := c.Agent.Organisation(), b.clock(l)
	return slices.ContainsFunc(l.state.Participants(), func(a performatives.Agent) bool {
		return a.Organisation() == org && l.state.MayRead(a, at)
	})
}

// decidesIn tells whether the caller is a human who may decide in a session. One who was
// registered after the ESCALATE and has not acted yet may.
func (b *Broker) decidesIn(c api.Caller, l *cachedSession) bool {
	member, ok := b.registry.Member(c.Agent)
	return !c.Operator && ok && l.state.Decides(member)
}
