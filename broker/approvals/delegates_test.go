package approvals_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A human who has accepted a delegation decides nothing while it lasts: nobody is told otherwise, and an organisation of
// which nobody else may decide does not escalate (PROTOCOL.md §6). Nobody delegates to an auditor, who could not answer.
func TestDelegatesDecideNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	o.id = testkit.NewSession()
	o.accepted(alpha, &performatives.ProposeBody{
		ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: jsontext.Value(`{"participants":["` + string(beta) + `"]}`),
	})
	o.accepted(beta, &performatives.AcceptBody{ReferenceID: "i1"})
	delegates := func(from, to performatives.Agent) {
		t.Helper()
		given := o.accepted(from, &performatives.DelegateBody{TargetAgent: to, Authority: "limited", Scope: "terms"})
		o.accepted(to, &performatives.AcceptBody{ReferenceID: string(given.Message)})
	}
	escalates := &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: jsontext.Value(`"?"`)}

	delegates(beta, bob) // the only one who may decide for widgets.co
	if _, err := o.says(beta, escalates); testkit.CodeOf(err) != session.Unauthorized || !strings.Contains(err.Error(), "holds a delegation") {
		t.Errorf("an escalation that nobody may decide: %v", err)
	}
	const audrey = performatives.Agent("human://widgets.co/audrey")
	o.b.Register(audrey, func(c *api.Card) { c.Registry.MayDecide, c.Registry.Auditor = false, true })
	if _, err := o.says(beta, &performatives.DelegateBody{TargetAgent: audrey, Authority: "limited", Scope: "terms"}); testkit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a delegation to an auditor: %v", err)
	}

	delegates(alpha, alice)
	id := escalation.ID(o.accepted(alpha, escalates).Message)
	item := o.item(alice, id)
	if item.You.Decide || !strings.Contains(item.You.Why, "delegation") {
		t.Errorf("a delegate is told %+v", item.You)
	}
	if slices.ContainsFunc(item.Approvers, func(a api.Approver) bool { return a.Agent == alice }) || len(item.Approvers) != 2 {
		t.Errorf("asked are %+v", item.Approvers)
	}
	o.refused(session.Unauthorized, alice, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(id)})
	if _, err := o.rules(alice, id, performatives.Denied); testkit.CodeOf(err) != session.SessionEscalated || !strings.Contains(err.Error(), "you hold a delegation") {
		t.Errorf("the decision of a delegate: %v", err)
	}
	if _, err := o.rules(anna, id, performatives.Denied); err != nil {
		t.Errorf("the decision of a colleague: %v", err)
	}
}
