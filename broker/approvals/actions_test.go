package approvals_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// Colleagues see an action at once and nobody else does, and it stops a decision where it has to.
func TestActions(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	e := o.asks("15000")
	ref := api.EscalationRef{Escalation: string(e)}

	first := o.item(alice, e)
	if first.You == nil || !first.You.Decide || first.Amount == nil || first.Amount.Value != 15000 || first.Due == "" || first.ViewHash == "" ||
		len(first.Approvers) != 3 || first.IfUnanswered == nil || len(first.Changes) != 2 {
		t.Errorf("%+v", first)
	}
	claimed := o.does(alice, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	if claimed.Case.Claim == nil || claimed.Case.Claim.By != alice || claimed.ViewHash != first.ViewHash {
		t.Errorf("%+v", claimed.Case)
	}
	o.refused(session.WrongTurn, anna, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	o.refused(session.WrongTurn, anna, api.EscalationRelease.Name, ref)
	if you := o.item(anna, e).You; you.Decide || you.Why == "" {
		t.Errorf("anna may decide what alice has claimed: %+v", you)
	}
	if _, err := o.rules(anna, e, performatives.Denied); testkit.CodeOf(err) != session.WrongTurn {
		t.Errorf("anna decides what alice has claimed: %v", err)
	}
	for by, want := range map[string]int{api.ClaimedByMe: 1, api.ClaimedByNobody: 0, api.ClaimedByOthers: 0, "": 1} {
		list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, api.ListEscalations{Claimed: by})
		if err != nil || len(list.Escalations) != want || list.Counts.Open != 1 || list.Counts.Mine != 1 || list.Counts.Urgency["high"] != 1 {
			t.Errorf("claimed by %q: %+v %v", by, list, err)
		}
	}
	o.does(alice, api.EscalationRelease.Name, ref)
	o.does(anna, api.EscalationAssign.Name, api.AssignEscalation{Escalation: string(e), To: chief})
	o.refused(session.Unauthorized, anna, api.EscalationAssign.Name, api.AssignEscalation{Escalation: string(e), To: bob})
	o.refused(session.MalformedEnvelope, anna, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "  "})
	commented := o.does(anna, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "we have a better offer"})
	if commented.Case.Assignee != chief || commented.Case.Comments != 1 || commented.Revision != first.Revision+1 {
		t.Errorf("%+v", commented)
	}
	if item := o.item(chief, e); len(item.Comments) != 1 || item.Comments[0].Text != "we have a better offer" {
		t.Errorf("the chief reads %+v", item.Comments)
	}
	handed := o.does(chief, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), To: alice, Reason: "yours"})
	if handed.Case.Assignee != alice {
		t.Errorf("%+v", handed.Case)
	}

	// Nobody else is told of any of it.
	for _, a := range []performatives.Agent{alpha, beta} {
		item := o.item(a, e)
		if item.Case != (api.Case{}) || item.Route != nil || item.Comments != nil || item.Approvers != nil || item.You != nil || item.ViewHash != "" {
			t.Errorf("%s sees %+v", a, item)
		}
		o.refused(session.UnknownSession, a, api.EscalationHistory.Name, ref)
		o.refused(session.Unauthorized, a, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "hello"})
	}
	o.refused(session.UnknownSession, bob, api.EscalationGet.Name, ref)
	o.refused(session.UnknownSession, bob, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})

	// A decision on what was shown before the comment is none.
	_, err := o.rules(alice, e, performatives.Approved, asSeen(first))
	if testkit.CodeOf(err) != session.ChainConflict {
		t.Errorf("a stale decision: %v", err)
	}
	var now struct {
		Escalation api.EscalationItem `json:"escalation"`
	}
	if details(t, err, &now); now.Escalation.Revision != handed.Revision || now.Escalation.Case.Comments != 1 {
		t.Errorf("it is refused with %+v", now.Escalation)
	}
	accepted, err := o.rules(alice, e, performatives.Approved, asSeen(handed))
	if err != nil || accepted.State != session.Conversing {
		t.Fatal(accepted, err)
	}
	if again, err := o.rules(alice, e, performatives.Approved, asSeen(first)); err != nil || !again.Duplicate || again.Sequence != accepted.Sequence {
		t.Errorf("the same decision from another tab: %+v %v", again, err)
	}
	if _, err := o.rules(anna, e, performatives.Approved); testkit.CodeOf(err) != session.EscalationResolved {
		t.Errorf("a late one: %v", err)
	}
	o.refused(session.EscalationResolved, anna, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	want := []escalation.Kind{
		escalation.Opened, escalation.Viewed, escalation.Claimed, escalation.Viewed, escalation.Released, escalation.Assigned,
		escalation.Commented, escalation.Viewed, escalation.Transferred, escalation.Voted, escalation.Decided,
	}
	o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == performatives.Approved })
	if got := kindsOf(o.history(e)); !slices.Equal(got, want) {
		t.Errorf("the history is\n%v, want\n%v", got, want)
	}
}

// A claim locks nobody out who can decide when its holder cannot, and can be taken over.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	id := o.asks("15000")
	o.does(alice, "escalation.claim", api.ClaimEscalation{Escalation: string(id)})
	o.refused(session.WrongTurn, anna, "escalation.claim", api.ClaimEscalation{Escalation: string(id)})
	for _, lease := range []int64{-1, (8 * time.Hour).Milliseconds() + 1} {
		o.refused(session.MalformedEnvelope, alice, "escalation.claim", api.ClaimEscalation{Escalation: string(id), Lease: lease})
	}
	item := o.does(anna, "escalation.claim", api.ClaimEscalation{Escalation: string(id), TakeOver: true})
	if item.Case.Claim == nil || item.Case.Claim.By != anna {
		t.Fatalf("claimed by %+v", item.Case.Claim)
	}
	history := o.history(id)
	if last := history[len(history)-1]; last.Kind != escalation.Claimed || last.By != anna || last.To != alice {
		t.Errorf("the history ends with %+v", last)
	}
	o.refused(session.WrongTurn, alice, "escalation.release", api.EscalationRef{Escalation: string(id)})
	o.b.Register(anna, func(c *api.Card) { c.Registry.MayDecide = false })
	if _, err := o.rules(alice, id, performatives.Denied); err != nil {
		t.Errorf("a claim by somebody who may not decide keeps a colleague from deciding: %v", err)
	}
}

// A watch has the filters of the list.
func TestWatchFilters(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	for _, bogus := range []api.ListEscalations{{Urgency: "bogus"}, {Session: "bogus"}, {DecidedBy: "bogus"}, {Cursor: "bogus"}} {
		o.refused(session.MalformedEnvelope, alice, "escalation.list", bogus)
	}
	o.refused(session.MalformedEnvelope, alice, "escalation.watch", api.WatchEscalations{Urgency: "bogus"})
	now, err := calls[api.Watched](o, alice, "escalation.watch", api.WatchEscalations{})
	testkit.Must(t, err)
	o.asks("15000")
	for { // a watch learns of it a moment after a read does
		changed, err := calls[api.Watched](o, alice, "escalation.watch", api.WatchEscalations{Since: now.Cursor, Wait: 1_000})
		testkit.Must(t, err)
		if len(changed.Changed) > 0 {
			break
		}
	}
	for _, c := range []struct {
		q    api.WatchEscalations
		want int
	}{
		{api.WatchEscalations{}, 1},
		{api.WatchEscalations{Urgency: "high"}, 1},
		{api.WatchEscalations{Urgency: "low"}, 0},
		{api.WatchEscalations{Claimed: api.ClaimedByOthers}, 0},
		{api.WatchEscalations{Search: "boats"}, 0},
	} {
		c.q.Since = now.Cursor
		if got, err := calls[api.Watched](o, alice, "escalation.watch", c.q); err != nil || len(got.Changed) != c.want {
			t.Errorf("%+v finds %d (%v), want %d", c.q, len(got.Changed), err, c.want)
		}
	}
}
