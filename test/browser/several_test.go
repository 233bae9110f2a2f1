//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestSeveral denies some items and hands over others at once: by keyboard, with one comment, each by an
// act of its own. What fails is named, and the rest stand.
func TestSeveral(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	first, _, one := w.asks("First", "critical", plan)
	second, _, two := w.asks("Second", "high", plan)
	third, _, three := w.asks("Third", "medium", plan)
	fourth, _, four := w.asks("Fourth", "low", plan)
	b := w.enters(alice, "")
	b.reads(".live", "live")
	if b.has("#several-bar:not([hidden])") {
		t.Error("what is selected is shown without a selection")
	}
	for range 3 { // by keyboard
		b.presses("j")
		b.presses("s")
	}
	b.reads("#several-bar", "3 selected")
	w.asks("Another", "critical", plan) // arrives, and changes neither the focus nor the selection
	b.reads(".queue", "Another")
	b.reads("#several-bar", "3 selected")
	b.holds(`document.activeElement.dataset.id === "` + three + `"`)
	b.looks("three items selected")
	b.presses("d")
	b.sees("#several[open]")
	b.reads("#several", "Deny 3 items")
	for _, subject := range []string{"First", "Second", "Third"} {
		b.reads("#several li", subject)
	}
	if b.has("#several [data-decision=approved]") {
		t.Error("several items can be approved at once")
	}
	b.looks("the form to deny several")
	w.said(w.as(bob).Session(second.ID()).Rule(w.Ctx, two, client.Ruling{Decision: performatives.Denied, Comment: "bob was first"}))
	b.types("#several-comment", "Not this quarter")
	b.signs()
	b.reads("#several .news", "Denied: 2 of 3. The others failed")
	b.reads(`#several li[data-id="`+two+`"] .result`, "Failed:")
	b.reads(`#several li[data-id="`+one+`"] .result`, "Denied.")
	for _, c := range []struct {
		s  *client.Session
		by string
	}{{first, "Not this quarter"}, {second, "bob was first"}, {third, "Not this quarter"}} {
		if got := w.rulings(c.s); len(got) != 1 || got[0].Decision != performatives.Denied || got[0].Comment != c.by {
			t.Errorf("signed was %+v, want one by %s", got, c.by)
		}
	}
	if n := len(w.rulings(fourth)); n != 0 {
		t.Errorf("%d rulings on what was not selected", n)
	}
	b.presses(kb.Escape)
	b.holds(`document.querySelectorAll(".row").length === 2 && document.querySelector("#several-bar").hidden`)

	b.do(chromedp.Click(css(`[data-pick="` + four + `"]`))) // with the pointer
	b.reads("#several-bar", "1 selected")
	b.clicks("[data-do=pass-several]")
	b.reads("#several", "Hand over 1 item")
	b.reads("#several-to", "bob")
	b.types("#several-comment", "you know them")
	b.clicks("#several button[type=submit]")
	b.reads("#toast", "Handed over: 1 item.")
	b.reads(`.row[data-id="`+four+`"] .held`, "bob")
	b.clicks(`.row[data-id="` + four + `"]`)
	b.reads("#item > .notice", "Handed over to bob by alice: “you know them”")
}
