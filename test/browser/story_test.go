//go:build browser

package browser

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestStory is the seed's escalation pattern with a human in a browser: two
// agents, a proposal of $15,000, the pause, an approval with a ceiling, and then
// an ACCEPT within it and a COMMIT above it.
func TestStory(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, seller, id := w.asks("Enterprise plan", "high", plan)
	if got := w.state(buyer); got != "ESCALATED" {
		t.Fatalf("the session is %s after the ESCALATE", got)
	}
	b := w.enters(alice, "items/"+id)
	b.sees("#item")
	b.reads("#item-title", "Enterprise plan")
	b.reads(".title .stake", "USD 15,000")
	b.reads(".said", "exceeds my authorized spending limit")
	b.reads(".entry.counterparty", "Enterprise plan")
	b.clicks("[data-open=approve]")
	b.sees("#approve-exactly:checked")
	b.types("#approve-comment", "Approved at $15k")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	b.reads("#item > .notice", "In force: exactly these terms")
	if got := w.state(buyer); got != "CONVERSING" {
		t.Fatalf("the session is %s after the decision", got)
	}
	w.said(buyer.Accept(w.Ctx, "prop_050"))
	_, err := buyer.Commit(w.Ctx, client.Commitment{
		For: "prop_050", Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}},
		Escrow: &performatives.Escrow{Amount: 20000, Currency: "USD"},
	})
	var refusal *session.Refusal
	if !errors.As(err, &refusal) || refusal.Code != session.AuthorityExceeded {
		t.Errorf("a COMMIT above the ceiling is answered %v", err)
	}
	_ = seller
	if n := len(w.rulings(buyer)); n != 1 {
		t.Errorf("the transcript has %d rulings", n)
	}
	entries, err := w.as(alpha).Transcript(w.Ctx, buyer.ID())
	testkit.Must(w, err)
	for _, e := range entries {
		if e.Message.Sender == alice && e.Message.Broker != w.Server.Broker.Command.Key() {
			t.Errorf("the decision names the broker %q, want %q", e.Message.Broker, w.Server.Broker.Command.Key())
		}
	}
}

// rulings are the decisions in a transcript.
func (w *world) rulings(s *client.Session) (all []performatives.RulingData) {
	w.Helper()
	entries, err := w.as(alpha).Transcript(w.Ctx, s.ID())
	testkit.Must(w, err)
	for _, e := range entries {
		if e.Message.DecodeBody() != nil {
			continue
		}
		if inform, ok := e.Message.Body.(*performatives.InformBody); ok {
			if ruling, ok := inform.Ruling(); ok {
				all = append(all, ruling)
			}
		}
	}
	return all
}

// TestConfirmation has two agents agree, and a human of each organisation confirm that, at two
// pages that are open at the same time.
func TestConfirmation(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	const carol performatives.Agent = "human://clouds.example/carol"
	w.registers(carol)
	seller, err := w.as(sales).Invite(w.Ctx, client.Invitation{
		ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "A match", Mode: "bilateral/1", Policy: map[string]any{"confirm": true},
	})
	testkit.Must(t, err)
	buyer := w.as(alpha).Session(seller.ID())
	w.said(buyer.Accept(w.Ctx, "inv"))
	fits := client.Assess(map[string]any{"reasoning": "it fits us both", "suggestedRoles": map[string]string{"ownUser": "peer", "otherUser": "peer"}})
	offered, err := seller.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "opportunity", Subject: "A boat for two", Terms: map[string]any{"days": 3}}, fits)
	testkit.Must(t, err)
	agreed, err := buyer.Accept(w.Ctx, "p1", fits)
	testkit.Must(t, err)

	ours, theirs := w.enters(alice, "items/"+string(agreed.Message)), w.enters(carol, "items/"+string(offered.Message))
	for _, b := range []*browser{ours, theirs} {
		b.reads("#item-title", "A boat for two")
		b.reads(".said", "it fits us both")
		b.reads(".live", "live")
		b.clicks("[data-open=approve]")
		b.sees("#approve[open]")
	}
	ours.clicks("#approve button[type=submit]")
	ours.reads("#item > .notice", "approved by alice")
	if got := w.state(buyer); got != "ESCALATED" {
		t.Errorf("with one confirmation the session is %s", got)
	}
	theirs.clicks("#approve button[type=submit]")
	theirs.reads("#item > .notice", "approved by carol")
	if got := w.state(buyer); got != "CLOSED" {
		t.Errorf("with both confirmations the session is %s", got)
	}
}

// TestDoubleClick decides once.
func TestDoubleClick(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=deny]")
	b.sees("#deny[open]")
	b.do(chromedp.DoubleClick(css("#deny button[type=submit]")))
	b.reads("#item > .notice", "denied by alice")
	if b.has("#comment") {
		t.Error("a note can be written that nobody takes any more")
	}
	if n := len(w.rulings(buyer)); n != 1 {
		t.Errorf("a double click makes %d rulings", n)
	}
}

// TestRace has one human at the page and one at the command line: what one
// decides the other sees at once, also at an open form, and cannot decide again.
func TestRace(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	watching, deciding := w.enters(alice, "items/"+id), w.enters(alice, "items/"+id)
	watching.reads(".live", "live")
	deciding.reads(".live", "live")
	deciding.clicks("[data-open=approve]")
	deciding.sees("#approve[open]")

	w.said(w.as(bob).Session(buyer.ID()).Rule(w.Ctx, id, client.Ruling{Decision: performatives.Denied, Comment: "not this quarter"}))
	watching.reads("#item > .notice", "denied by bob")
	deciding.reads("#approve .refused", "Already decided: denied")
	deciding.clicks("#approve button[type=submit]")
	deciding.reads("#approve .refused", "Show the current version")
	deciding.clicks("#approve .refused [data-do=look]")
	deciding.reads("#item > .notice", "denied by bob")
	if rulings := w.rulings(buyer); len(rulings) != 1 || rulings[0].Decision != performatives.Denied {
		t.Errorf("the transcript has %+v", rulings)
	}
}

// TestRaceForReal lets both send at the same time, more than once: one wins.
func TestRaceForReal(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	for range 3 {
		buyer, _, id := w.asks("Enterprise plan", "high", plan)
		b := w.enters(alice, "items/"+id)
		b.clicks("[data-open=approve]")
		b.sees("#approve[open]")
		s := w.as(bob).Session(buyer.ID())
		cli := make(chan error)
		go func() {
			_, err := s.Rule(w.Ctx, id, client.Ruling{Decision: performatives.Denied})
			cli <- err
		}()
		b.clicks("#approve button[type=submit]")
		err := <-cli
		rulings := w.rulings(buyer)
		if len(rulings) != 1 {
			t.Fatalf("the transcript has %+v", rulings)
		}
		if won := rulings[0].Decision == performatives.Denied; won != (err == nil) {
			t.Errorf("the command line is answered %v, and the transcript says %s", err, rulings[0].Decision)
		} else if won {
			b.reads("#approve .refused", "Show the current version")
		} else {
			b.reads("#item > .notice", "approved by alice")
		}
	}
}

// TestStaleTab refuses a decision on what is not there any more, and lets it be
// made again on what is.
func TestStaleTab(t *testing.T) {
	w := newWorld(t, testkit.Options{Rules: fourEyes()})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".live", "live")
	b.clicks("[data-open=approve]")
	b.sees("#approve[open]")
	most := 9000.0
	w.said(w.as(bob).Session(buyer.ID()).Rule(w.Ctx, id, client.Ruling{Decision: performatives.Approved, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD"}}))
	b.reads("#approve .refused", "has changed while you were deciding")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "Show the current version")
	if n := len(w.rulings(buyer)); n != 1 {
		t.Fatalf("a stale decision was taken: %d rulings", n)
	}
	b.clicks("#approve [data-do=look]")
	b.reads("#item > .notice", "1 of 2 approvals. So far the agent may agree to: at most USD 9,000")
	b.clicks("[data-open=deny]")
	b.types("#deny-comment", "The CFO says no.")
	b.clicks("#deny button[type=submit]")
	b.reads("#item > .notice", "denied by alice")
}

// TestTabs has two tabs of one browser follow over one connection; when the one
// that listens goes, the other listens itself.
func TestTabs(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	profile := w.enters(alice, "")
	profile.reads(".live", "live")
	profile.do(chromedp.Navigate("about:blank")) // it follows no more
	first, closes := profile.tab()
	first.opens("items/" + id)
	first.reads(".live", "live")
	second, _ := profile.tab()
	second.opens("items/" + id)
	w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: id, Text: "one"})
	first.reads(".notes", "one")
	second.reads(".notes", "one")
	closes()
	second.reads(".live", "live")
	w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: id, Text: "two"})
	second.reads(".notes", "two")
}

// TestModify binds several terms in the thread at stake, and the broker enforces all of them.
func TestModify(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=modify]")
	b.sees("#modify[open]")
	b.clicks("#modify button[type=submit]")
	b.reads("#modify .refused", "just what was asked for")
	b.types(`#modify [data-term="terms.pricePerMonth"] [data-value]`, "20000")
	b.clicks("#modify button[type=submit]")
	b.reads("#modify .news", "more than was asked for: Price per month 20,000.00 USD, not 15,000.00 USD")
	b.types(`#modify [data-term="terms.pricePerMonth"] [data-value]`, "12000")
	b.types(`#modify [data-term="terms.seats"] [data-value]`, "250")
	get[bool](b, `(document.querySelector('#modify [data-term="terms.seats"] [data-rule]').value = 'min', true)`)
	b.types(`#modify [data-term="terms.support"] [data-value]`, "8/5")
	b.clicks("#modify [name=thread]")
	b.types("#modify-comment", "We grow slower.")
	b.clicks("#modify button[type=submit]")
	b.reads("#modify .news", "less than was asked for: Seats 250, not 300")
	b.clicks("#modify button[type=submit]")
	b.reads("#item > .notice", "modified by alice")
	b.reads("#item > .notice", "Seats: at least 250")
	b.reads("#item > .notice", "in this thread only")
	rulings := w.rulings(buyer)
	if len(rulings) != 1 || rulings[0].Authority == nil || rulings[0].Comment != "We grow slower." {
		t.Fatalf("signed was %+v", rulings)
	}
	said, err := json.Marshal(rulings[0].Authority)
	testkit.Must(t, err)
	if string(said) != `{"bounds":[{"termPath":"terms.pricePerMonth","max":12000,"currency":"USD"},{"termPath":"terms.seats","min":250},{"termPath":"terms.support","equals":"8/5"}],"scope":"thread"}` {
		t.Errorf("signed was %s", said)
	}
	exceeded := func(terms map[string]any) {
		t.Helper()
		_, err := buyer.Counter(w.Ctx, "prop_050", client.Proposal{ID: "counter_" + fmt.Sprint(len(terms["support"].(string)), terms["seats"]), Terms: terms})
		var refusal *session.Refusal
		if !errors.As(err, &refusal) || refusal.Code != session.AuthorityExceeded {
			t.Errorf("a COUNTER of %v is answered %v", terms, err)
		}
	}
	exceeded(map[string]any{"seats": 250, "support": "24/7", "pricePerMonth": 12000, "currency": "USD"})
	exceeded(map[string]any{"seats": 200, "support": "8/5", "pricePerMonth": 12000, "currency": "USD"})
	exceeded(map[string]any{"seats": 250, "support": "8/5", "pricePerMonth": 12001, "currency": "USD"})
}

// TestColleagues claims, notes, hands over and releases, and sees what others do.
func TestColleagues(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".live", "live")
	w.calls(bob, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: id})
	b.reads("#item > .notice", "bob has claimed this")
	b.reads(`.row[data-id="`+id+`"] .held`, "bob")
	w.calls(bob, api.EscalationRelease.Name, api.EscalationRef{Escalation: id})
	b.clicks("[data-do=claim]")
	b.reads("#item > .notice", "You have claimed this")
	b.types("#comment", "Looks <b>fine</b> to me")
	b.clicks(".notes form button")
	b.reads(".notes li", "Looks <b>fine</b> to me")
	b.clicks("[data-do=release]")
	b.sees("[data-do=claim]")
	b.clicks("[data-open=pass]")
	b.types("#pass-reason", "you know them")
	b.clicks("#pass button[type=submit]")
	b.reads("#item > .notice", "Handed over to bob by alice: “you know them”")
	b.reads(".notes", "you know them")
	b.reads(".events", "transferred by alice → bob")
	view, err := w.as(sales).Transcript(w.Ctx, buyer.ID())
	testkit.Must(w, err)
	if len(view) != 4 {
		t.Errorf("what colleagues do is in the transcript: %d entries", len(view))
	}
}
