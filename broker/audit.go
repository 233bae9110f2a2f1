package broker

import (
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An auditor is a human who reads the sessions in which its organisation takes
// part, as the operator set it in the registry, and does nothing else: it says
// nothing in a session, decides no escalation, registers nothing.

func auditorsRead() error {
	return session.Refuse(session.Unauthorized, "an auditor reads, and does nothing else")
}

// mayAudit tells whether the caller is an auditor of a session: of one that
// somebody of its organisation may read.
func (b *Broker) mayAudit(c api.Caller, l *live) bool {
	if !b.registry.Audits(c) {
		return false
	}
	org, at := c.Agent.Organisation(), b.clock(l)
	return slices.ContainsFunc(l.state.Roll(), func(a performatives.Agent) bool {
		return a.Organisation() == org && l.state.MayRead(a, at)
	})
}

// decidesIn tells whether the caller is a human who may decide in a session,
// also one who was registered after the ESCALATE and has not spoken yet.
func (b *Broker) decidesIn(c api.Caller, l *live) bool {
	member, ok := b.registry.Member(c.Agent)
	return !c.Operator && ok && l.state.Decides(member)
}
