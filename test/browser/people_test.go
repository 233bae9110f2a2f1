//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
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
	b.reads("#item > .notice", "In force: exactly these terms")
	rulings := w.rulings(buyer)
	if len(rulings) != 1 || rulings[0].Authority == nil || rulings[0].Authority.TermsHash == "" || rulings[0].Authority.MaxAmount != nil {
		t.Fatalf("signed was %+v", rulings)
	}
	w.said(buyer.Accept(w.Ctx, "prop_050"))
}

// TestMayChange names the terms that a bound leaves free, before it is signed and after.
func TestMayChange(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=approve]")
	b.sees("#approve-exactly:checked")
	b.holds(`document.querySelector("#approve [data-free]").textContent === ""`)
	b.clicks("#approve-to-amount")
	b.reads("#approve [data-free]", "May change: Seats, Support.")
	b.presses("\x1b")
	b.clicks("[data-open=modify]")
	b.reads("#modify [data-free]", "May change: Seats, Support.")
	get[bool](b, `(() => { const rule = document.querySelector("#modify [data-term='terms.seats'] [data-rule]"); rule.value = "min"; rule.dispatchEvent(new Event("input", { bubbles: true })); return true; })()`)
	b.reads("#modify [data-free]", "May change: Support.")
	b.presses("\x1b")
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "In force: at most USD 15,000 for Price per month; may change: Seats, Support")
	if r := w.rulings(buyer); len(r) != 1 || r[0].Authority.TermsHash != "" || r[0].Authority.MaxAmount == nil {
		t.Fatalf("signed was %+v", r)
	}
	_, err := buyer.Counter(w.Ctx, "prop_050", client.Proposal{Terms: map[string]any{"seats": 1, "support": "none", "pricePerMonth": 15000, "currency": "USD"}})
	testkit.Must(w, err)
}

// TestPageFault: an error of JavaScript's own is no text for people, and a page that is loaded anew works.
func TestPageFault(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=approve]")
	get[bool](b, `(document.querySelector("#approve-comment").remove(), true)`)
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "Something went wrong on this page. Reload it")
	if text := b.text("#approve .refused"); strings.Contains(text, "undefined") || strings.Contains(text, "TypeError") {
		t.Errorf("the page shows %q", text)
	}
	if r := w.rulings(buyer); len(r) != 0 {
		t.Errorf("signed was %+v", r)
	}
	b.opens("items/" + id)
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "In force: exactly these terms")
}

// TestNoOffer approves an item about no offer: nothing is bound, and the page says so. Who has a
// ceiling is told who can, whatever keys they press.
func TestNoOffer(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	for _, c := range []struct {
		by    performatives.Agent
		signs bool
	}{{bob, true}, {alice, false}} {
		if !c.signs {
			w.registers(c.by, limited)
		}
		buyer, _ := w.opens("Choose a supplier")
		asked, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.PolicyAmbiguous, Context: "May I go on?"})
		testkit.Must(w, err)
		b := w.enters(c.by, "items/"+string(asked.Message))
		b.clicks("[data-open=approve]")
		if !c.signs {
			b.reads("#approve", "These can approve it: bob")
			get[bool](b, `(document.querySelector("#approve form").requestSubmit(), true)`)
			w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(asked.Message), Text: "I will"})
			b.reads("#approve .news", "bob wrote a note")
			continue
		}
		b.reads("#approve .extent", "without a bound: no offer is at stake")
		b.clicks("#approve button[type=submit]")
		b.reads("#item > .notice", "approved by bob")
		b.reads("#item > .notice", "In force: no bound")
	}
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

// TestAccessible has axe-core look at every page, in both schemes and on a phone.
func TestAccessible(t *testing.T) {
	w := newWorld(t, testkit.Options{Rules: fourEyes()})
	w.takes(15 * time.Minute)
	_, _, id := w.asks("Enterprise plan", "high", manyTerms())
	buyer, _, other := w.asks("Second", "low", plan)
	w.calls(bob, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: other})
	ended, _ := w.opens("Third")
	w.said(ended.Close(w.Ctx, client.Closing{Outcome: "failed"}))
	door := w.browser()
	door.opens("login")
	door.sees("#code")
	door.accessible("the sign-in")
	b := w.enters(alice, "")
	b.reads(".live", "live")
	for _, path := range []string{"", "?status=resolved", "items/" + id, "items/" + other, "checks", "sessions", "sessions/" + string(buyer.ID()), "agents", "insights"} {
		b.opens(path)
		b.sees("main, .queue")
		b.accessible("/" + path)
	}
	b.reads(".chart table", "failed")
	b.readable()
	b.dark()
	b.opens("insights")
	b.accessible("charts in the dark")
	b.opens("items/" + id)
	b.sees("#item")
	b.accessible("an item in the dark")
	for _, form := range []string{"approve", "modify", "deny", "guidance", "pass"} {
		b.clicks("[data-open=" + form + "]")
		b.sees("#" + form + "[open]")
		b.accessible(form)
		b.presses("\x1b")
		b.holds(`!document.querySelector("dialog[open]")`)
	}
	b.presses("?")
	b.sees("#help[open]")
	b.accessible("help")
	b.presses("\x1b")
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.opens("items/" + id)
	b.accessible("a phone")
}

// manyTerms are 122 terms, some with long keys and values.
func manyTerms() map[string]any {
	terms := map[string]any{"pricePerMonth": 15000, "currency": "USD", strings.Repeat("veryLongKey", 30): strings.Repeat("W", 3000)}
	for n := len(terms); n < 122; n++ {
		terms[fmt.Sprintf("term%03d", n)] = n
	}
	return terms
}

// TestManyTerms shows what has changed first, folds the rest, and fits every window.
func TestManyTerms(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, seller := w.opens("Offer an enterprise plan")
	terms := manyTerms()
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "Plan", Terms: terms}))
	terms["term077"], terms["pricePerMonth"] = 78, 15000.1
	w.said(buyer.Counter(w.Ctx, "p1", client.Proposal{ID: "p2", Subject: "Plan", Terms: terms}))
	terms["pricePerMonth"], terms[strings.Repeat("added", 30)] = 15000.05, strings.Repeat("v", 900)
	w.said(seller.Counter(w.Ctx, "p2", client.Proposal{ID: "p3", Subject: "Plan", Terms: terms}))
	receipt, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, About: "p3", Context: "over my limit"})
	testkit.Must(t, err)
	b := w.enters(alice, "items/"+string(receipt.Message))
	b.sees("#item")
	b.reads("table.terms tbody tr:first-child", "−0.05")
	if n := get[int](b, `[...document.querySelectorAll("table.terms tbody tr")].filter((r) => r.checkVisibility()).length`); n != 12 {
		t.Errorf("%d of %d terms are shown at once", n, len(terms))
	}
	b.clicks(".first details.rest > summary")
	b.holds(fmt.Sprintf(`[...document.querySelectorAll("table.terms tbody tr")].filter((r) => r.checkVisibility()).length === %d`, len(terms)))
	for _, width := range []int64{320, 375, 768, 1021, 1440} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.fits()
		for _, what := range []string{".entry dd", "table.terms td.was"} {
			if narrow := get[float64](b, `Math.min(...[...document.querySelectorAll("`+what+`")].filter((e) => e.checkVisibility()).map((e) => e.clientWidth))`); narrow < 80 {
				t.Errorf("at %d a long name or value leaves %g pixels to a %s", width, narrow, what)
			}
		}
		for _, form := range []string{"approve", "modify", "pass"} {
			b.clicks("[data-open=" + form + "]")
			b.sees("#" + form + "[open]")
			b.fits()
			if over := get[float64](b, `(() => { const d = document.querySelector("dialog[open]"); return d.scrollWidth - d.clientWidth; })()`); over > 0 {
				t.Errorf("at %d the form %s is %g pixels wider than itself", width, form, over)
			}
			b.presses("\x1b")
			b.holds(`!document.querySelector("dialog[open]")`)
		}
	}
	for _, path := range []string{"", "sessions", "sessions/" + string(buyer.ID())} {
		b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
		b.opens(path)
		b.sees("main, .queue")
		b.fits()
	}
}

// TestAuditor shows an auditor everything, and nothing to do.
func TestAuditor(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	carol := performatives.Agent("human://acme.example/carol")
	w.registers(carol, func(c *api.Card) { c.Registry.MayDecide, c.Registry.Auditor = false, true })
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(carol, "items/"+id)
	b.reads("#item-title", "Enterprise plan")
	b.sees(".events")
	if b.has("#item form, #item dialog, #item [data-open], [data-do=claim], [data-do=release]") {
		t.Error("an auditor is offered actions")
	}
}

// TestTakeOver takes a claim over from a colleague, who sees it.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	one, two := w.enters(alice, "items/"+id), w.enters(bob, "items/"+id)
	one.reads(".live", "live")
	one.clicks("[data-do=claim]")
	two.reads("#item > .notice", "alice has claimed this")
	two.clicks("[data-do=take-over]")
	two.reads("#item > .notice", "You have claimed this")
	one.reads("#toast", "A colleague has taken over your claim")
	one.reads(".events", "taken over by bob from alice")
	one.reads("#item > .notice", "bob has claimed this")
}

// TestDecided lists when items were decided and what is in force, and prints an item.
func TestDecided(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	most := 12000.0
	w.said(w.as(bob).Session(buyer.ID()).Rule(w.Ctx, id, client.Ruling{Decision: performatives.Approved, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD"}}))
	b := w.enters(alice, "?status=resolved")
	b.reads(".row", "at most USD 12,000")
	b.reads(".row .held", "bob")
	b.reads(".row .age", "decided")
	b.clicks(".row")
	b.sees("#item")
	get[bool](b, `(window.print = () => { window.printed = document.querySelectorAll("main details:not([open])").length; }, true)`)
	b.clicks("[data-do=print]")
	b.holds(`window.printed === 0`)
}
