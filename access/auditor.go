package access

import (
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An auditor is a human who may read the sessions in which its organisation takes part, and do
// nothing else. The operator says in the registry who is one.

// MayAudit tells whether the caller is an auditor, and somebody of its organisation may read
// the session.
func (x *Access) MayAudit(c api.Caller, s *Session) bool {
	if !x.Registry.Audits(c) {
		return false
	}
	org, at := c.Agent.Organisation(), s.At
	return slices.ContainsFunc(s.State.Participants(), func(a performatives.Agent) bool {
		return a.Organisation() == org && s.State.MayRead(a, at)
	})
}

// DecidesIn tells whether the caller is a human who may decide in a session. One who was
// registered after the ESCALATE and has not acted yet may.
func (x *Access) DecidesIn(c api.Caller, s *Session) bool {
	member, ok := x.Registry.Member(c.Agent)
	return !c.Operator && ok && s.State.Decides(member)
}
