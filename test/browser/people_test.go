//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
)

var noAmount = map[string]any{"law": "Swiss law", "court": "Zürich"}

func limited(c *api.Card) {
	c.Registry.Limits = []performatives.Limit{{Currency: "USD", MaxAmount: 10000}}
}

// TestExactly approves terms that name no amount: exactly those that were shown.
func TestExactly(t *testing.T) {
	w := newWorld(t, testkit.Options{Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {NonMonetary: escalation.NonMonetaryAllow},
	}}})
	w.registers(alice, limited)
	buyer, _, id := w.asks("Choice of law", "high", noAmount)
	b := w.enters(alice, "items/"+id)
	b.reads(".decide", "No amount is at stake: you may approve exactly these terms")
	b.clicks("[data-open=approve]")
	b.sees("#approve-exactly:checked")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "In force: exactly the terms that were shown")
	rulings := w.rulings(buyer)
	if len(rulings) != 1 || rulings[0].Authority == nil || rulings[0].Authority.TermsHash == "" || rulings[0].Authority.MaxAmount != nil {
		t.Fatalf("signed was %+v", rulings)
	}
	w.said(buyer.Accept(w.Ctx, "prop_050"))
}

// TestNoDeadEnd says who can approve what the reader cannot, and hands it over.
func TestNoDeadEnd(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registers(alice, limited)
	_, _, id := w.asks("Choice of law", "high", noAmount)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=approve]")
	b.reads("#approve", "These can approve it: bob")
	b.clicks("#approve [data-do=pass-on]")
	b.sees("#pass[open]")
	b.clicks("#pass button[type=submit]")
	b.reads("#item > .notice", "Handed over to bob by alice")
}

// TestDrafts keeps what somebody writes, whatever happens around it.
func TestDrafts(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("First", "high", plan)
	_, _, other := w.asks("Second", "low", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".live", "live")
	b.types("#comment", "half a note")
	b.clicks("[data-open=deny]")
	b.types("#deny-comment", "half a reason")
	w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: id, Text: "wait: the CFO says no"})
	b.reads("#deny .news", "bob wrote a note: “wait: the CFO says no”")
	b.reads(".notes", "the CFO says no")
	b.presses("\x1b")
	b.holds(`document.querySelector("#comment").value === "half a note"`)
	get[bool](b, `(document.activeElement.blur(), true)`)
	b.presses("j")
	b.holds(`document.querySelector("#item").dataset.id === "` + other + `" && document.querySelector("#comment").value === ""`)
	b.presses("k")
	b.holds(`document.querySelector("#item").dataset.id === "` + id + `" && document.querySelector("#comment").value === "half a note"`)
	b.do(chromedp.Reload())
	b.reads(".live", "live")
	b.holds(`document.querySelector("#comment").value === "half a note"`)
	// A note that fails is not lost.
	get[bool](b, `(() => { window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('down')); return true; })()`)
	b.clicks(".notes form button")
	b.reads("#toast", "Cannot reach the inbox")
	b.holds(`document.querySelector("#comment").value === "half a note"`)
	get[bool](b, `(window.fetch = window.real, true)`)
	b.clicks(".notes form button")
	b.reads(".notes li", "half a note")
	b.holds(`document.querySelector("#comment").value === ""`)
	b.clicks("[data-open=deny]")
	b.holds(`document.querySelector("#deny-comment").value === "half a reason"`)
	w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: id, Text: "one more"})
	b.reads("#deny .news", "one more")
	b.clicks("#deny button[type=submit]")
	b.reads("#item > .notice", "denied by alice")
	if rulings := w.rulings(buyer); len(rulings) != 1 || rulings[0].Comment != "half a reason" {
		t.Errorf("signed was %+v", rulings)
	}
	b.reads("#item > .notice button", "Next: Second")
	b.presses("j")
	b.reads("#item-title", "Second")
}
