package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// inboxOf is an item that much has happened around, in the queue, by itself, and
// its history.
func inboxOf(item api.EscalationItem, style render.Style) string {
	noon := time.Date(2026, 3, 7, 15, 0, 0, 0, time.UTC)
	most := 15000.0
	item.Due, item.ViewHash, item.Revision = "2026-03-07T15:10:00.000Z", "sha256:00", 3
	item.Route = &api.Route{Rule: "large", Level: 1, Levels: []api.Level{
		{Name: "buyers", Approvers: []performatives.Agent{alice, "human://acme.com/anna"}, Quorum: 2, Approved: 1, Due: "2026-03-07T14:50:00.000Z"},
		{Name: "board", Approvers: []performatives.Agent{"human://acme.com/chief"}, Quorum: 1, Due: item.Due},
		{Quorum: 1, Due: item.Deadline},
	}}
	item.Votes = []api.VoteView{{By: alice, Decision: "approved", At: "2026-03-07T14:40:00.000Z", Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD", TermPath: "terms.price"}}}
	item.Case = api.Case{Claim: &api.Claim{By: "human://acme.com/chief", Until: noon.Add(10 * time.Minute)}, Comments: 1}
	item.You = &api.You{Why: "human://acme.com/chief has claimed it"}
	item.IfUnanswered = &api.IfUnanswered{At: item.Due, Then: "level 3 is asked, too: every human who may decide"}
	item.Previous = item.Proposal
	now := *item.Proposal
	now.Terms = terms(`{"pricePerMonth":14000,"seats":"\u001b[2Jmany"}`)
	item.Proposal = &now
	item.Comments = []api.CaseAction{{Kind: escalation.Commented, At: noon, By: alice, Text: "we have a better offer\nfrom gamma"}}
	over := item
	over.Status, over.Due = "expired", ""
	counts := api.EscalationCounts{Open: 1, Urgency: map[string]int{"high": 1}, DueSoon: 1, Mine: 0}
	return render.Escalations(api.Escalations{Escalations: []api.EscalationItem{item, over}, Counts: counts, Now: "2026-03-07T15:00:00.000Z"}, style) +
		render.Item(item, style) +
		render.History(api.CaseLog{Actions: []api.CaseAction{
			{Kind: escalation.Opened, At: noon, By: alpha, Text: "large"},
			{Kind: escalation.Claimed, At: noon, By: alice, Until: noon.Add(time.Minute)},
			{Kind: escalation.Reescalated, At: noon, Level: 1},
			{Kind: escalation.Transferred, At: noon, By: alice, To: "human://acme.com/chief", Text: "above me"},
		}}, style) + render.History(api.CaseLog{}, style) +
		render.Enrolment(api.Enrolment{Agent: alice, Code: "ABCD-EFGH-IJKL-MNOP", Expires: noon}, style)
}

// TestDisputeItem: whose word a dispute is, and for whom it is answered.
func TestDisputeItem(t *testing.T) {
	t.Parallel()
	var item api.EscalationItem
	item.By, item.OnBehalfOf, item.Organisation = "agent://widgets.co/seller", "agent://acme.com/buyer", "acme.com"
	item.Dispute, item.Reason, item.Context = "d0", performatives.Dispute, []byte(`"it never came"`)
	item.Proposal = &api.OfferView{Commitment: "k1", From: item.OnBehalfOf, Status: "accepted"}
	text := render.Item(item, render.Style{Width: 200})
	for _, want := range []string{"seller  agent://widgets.co/seller disputes, to be answered for buyer\n", "what seller claims\n", "about: commitment k1 offered by buyer, accepted\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %q: %s", want, text)
		}
	}
	if list := render.Escalations(api.Escalations{Escalations: []api.EscalationItem{item}}, render.Style{Width: 200}); !strings.Contains(list, "seller (disputes)") {
		t.Error(list)
	}
}

// TestShortenedItem: an item that was cut says so, what is left out, and where all of it is.
func TestShortenedItem(t *testing.T) {
	t.Parallel()
	item := api.EscalationItem{Session: "s1", Omitted: map[string]int{"changes": 7}}
	item.Truncated = true
	text := render.Item(item, render.Style{Width: 200})
	if !strings.Contains(text, "shortened: what is too long here is cut, without 7 of the changes; parley session show s1 --full shows all") {
		t.Error(text)
	}
	if item.Truncated = false; strings.Contains(render.Item(item, render.Style{Width: 200}), "shortened") {
		t.Error("an item that is whole says that it is not")
	}
}
