//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestFinder finds by Ctrl-K whatever the human may see, by keyboard alone, also what is nearly written so,
// and nothing of others.
func TestFinder(t *testing.T) {
	w := newWorld(t, testkit.Options{Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Roles: map[string][]string{escalation.RoleOwner: {string(alice)}}},
	}}})
	w.registersCarol()
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	agreed, seller := w.opens("Crossing of the Skagerrak")
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "Ferry tickets", Terms: map[string]any{"price": 77, "currency": "EUR"}}))
	w.said(agreed.Accept(w.Ctx, "p1"))
	w.said(seller.Close(w.Ctx, client.Closing{Outcome: performatives.Completed}))
	w.delegates(alice, client.Advisory)
	b := w.enters(alice, "")
	b.reads(".live", "live")
	b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.sees("#finder[open]")
	b.reads("#finder-list", "Keyboard shortcuts")
	b.looks("the finder, empty")
	finds := func(text, group, title, href string) {
		t.Helper()
		b.types("#finder-text", text)
		b.holds(`[...document.querySelectorAll("#finder-list:not([aria-busy=true]) [role=group]")].some((g) => g.firstElementChild.textContent === "` + group + `" &&
  [...g.querySelectorAll("[role=option]")].some((o) => o.innerText.includes("` + title + `") && (o.dataset.href ?? o.dataset.run).includes("` + href + `")))`)
	}
	finds("enterprise", "Items", "Enterprise plan", "items/"+id)
	finds("entreprise", "Items", "Enterprise plan", "items/"+id) // two letters have changed places
	finds("skagerak", "Deals", "Crossing of the Skagerrak", "sessions/"+string(agreed.ID()))
	finds("clouds.example", "Deals", "Offer an enterprise plan", "sessions/"+string(buyer.ID()))
	finds(string(buyer.ID()), "Deals", "Offer an enterprise plan", "sessions/"+string(buyer.ID()))
	finds("ferry", "Agreements", "Ferry tickets", "sessions/"+string(agreed.ID()))
	finds("gdpr", "Checks", "GDPR Article 28", "checks/")
	finds("sales", "Agents", "Enterprise", "agents?search=")
	finds("out of office", "Pages and actions", "Out of office", "settings#away")
	finds("shortcuts", "Pages and actions", "Keyboard shortcuts", "help")
	b.types("#finder-text", "enterprise")
	b.reads("#finder-list", "Enterprise plan")
	b.looks("the finder, with results")
	b.holds(`document.activeElement.getAttribute("aria-activedescendant") === document.querySelector("#finder-list [aria-selected=true]").id`)
	first := get[string](b, `document.activeElement.getAttribute("aria-activedescendant")`)
	b.presses(kb.ArrowDown)
	b.holds(`document.activeElement.getAttribute("aria-activedescendant") !== "` + first + `"`)
	b.presses(kb.ArrowUp)
	b.holds(`document.activeElement.getAttribute("aria-activedescendant") === "` + first + `"`)
	b.presses(kb.Enter)
	b.reads("#item-title", "Enterprise plan")
	b.reads(".live", "live")
	b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierMeta)))
	b.sees("#finder[open]")
	get[bool](b, `let fails = 2, real = fetch;
window.fetch = (url, options) => String(url).includes("part/find") && fails-- > 0 ? Promise.reject(new TypeError("cut")) : real(url, options); true`)
	b.types("#finder-text", "shortcuts")
	b.presses(kb.Enter) // before the answer, which does not come at first
	b.sees("#help[open]")
	b.presses(kb.Escape)
	b.clicks("[data-do=find]")
	b.types("#finder-text", "zzzz <b>")
	b.reads("#finder-list", "Nothing that you may see matches “zzzz <b>”")
	b.presses(kb.Escape)
	b.holds(`!document.querySelector("dialog[open]")`)

	other := w.enters(carol, "") // of the same organisation, with no part in any of it
	other.clicks("[data-do=find]")
	for _, text := range []string{"skagerrak", "ferry", "enterprise plan", "gdpr", string(buyer.ID())} {
		other.types("#finder-text", text)
		other.reads("#finder-list", "Nothing that you may see matches “"+text+"”")
	}
}

// TestChecksInMenu counts the checks that wait, on every page, and by itself.
func TestChecksInMenu(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	b := w.enters(alice, "")
	b.reads(".live", "live")
	if got := b.text("#waiting"); got != "" {
		t.Errorf("without a check the menu counts %q", got)
	}
	b.presses("/")
	b.holds(`document.activeElement.id === "search"`)
	buyer, _ := w.delegates(alice, client.Advisory)
	b.holds(`document.querySelector("#waiting .n")?.firstChild.data === "1"`)
	b.holds(`document.activeElement.id === "search"`)
	for _, page := range []string{"home", "sessions", "agents", "insights", "settings", "checks"} {
		b.opens(page)
		b.holds(`document.querySelector("#waiting .n")?.firstChild.data === "1"`)
		b.looks(page)
	}
	b.opens("checks/" + string(buyer.ID()))
	b.clicks("[data-form=decline]")
	b.clicks("#decline button[type=submit]")
	b.reads(".empty", "Nothing to check")
	b.holds(`document.querySelector("#waiting .n") === null`)
}
