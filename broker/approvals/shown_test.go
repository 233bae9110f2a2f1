package approvals_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// The item of a commitment that names no proposal shows its terms, and an approval without a bound allows exactly these.
func TestCommitmentAtStake(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	o.id = testkit.NewSession()
	o.accepted(alpha, &performatives.ProposeBody{
		ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: jsontext.Value(`{"participants":["` + string(beta) + `"]}`),
	})
	o.accepted(beta, &performatives.AcceptBody{ReferenceID: "i1"})
	o.accepted(beta, &performatives.ObserveBody{Subject: "hello"})
	commits := func(id string, value float64) {
		t.Helper()
		o.accepted(beta, &performatives.CommitBody{CommitmentID: id, Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{{
			Party: alpha, Action: "pay", Amount: &performatives.Worth{Value: value, Currency: "USD"},
		}}}})
	}
	commits("k1", 4000)
	id := escalation.ID(o.accepted(alpha, &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: jsontext.Value(`"?"`), ReferenceID: "k1"}).Message)
	item := o.item(alice, id)
	if item.Proposal == nil || !strings.Contains(string(item.Proposal.Terms), "4000") || !item.AsShown() {
		t.Errorf("at stake is %+v", item.Proposal)
	}
	if bound := item.Exactly(nil); bound != nil {
		t.Errorf("an approval of it has the bound %+v", bound)
	}
	if _, err := o.rules(alice, id, performatives.Approved); err != nil {
		t.Fatal(err)
	}
	o.accepted(beta, &performatives.WithdrawBody{ReferenceID: "k1"})
	commits("k2", 7_000_000)
	if _, err := o.says(alpha, &performatives.AcceptBody{ReferenceID: "k2"}); testkit.CodeOf(err) != session.AuthorityExceeded || !strings.Contains(err.Error(), `"k1"`) {
		t.Errorf("what nobody has seen: %v", err)
	}
	view, err := calls[api.SessionView](o, alpha, api.SessionGet.Name, api.SessionRef{Session: o.id})
	testkit.Must(t, err)
	if len(view.Authorities) != 1 || view.Authorities[0].TermsHash == "" {
		t.Errorf("in force is %+v", view.Authorities)
	}
}
