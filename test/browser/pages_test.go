//go:build browser

package browser

import (
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

// huge is an amount that needs room.
var huge = map[string]any{"price": 123456789012.25, "currency": "USD", "rebate": -1500000}

// machine says what stands on the page, as visible text, that only a machine would say: a code, raw JSON, a URI
// where a name is possible. What a party wrote is quoted as it is; identifiers stand in code.
const machine = `(() => {
  const faults = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    const text = walk.currentNode.data.trim();
    if (!text || !e.checkVisibility() || e.closest('code, .uri, .text, script, noscript, datalist, .door')) continue;
    for (const code of [/\b[a-z]+(_[a-z]+)+\b/, /[{\[]\s*"|"\s*:\s*["{\[\d]/, /\b(agent|human):\/\//]) if (code.test(text)) faults.add(e.tagName + '.' + e.className + ': ' + text.slice(0, 160));
  }
  return [...faults].join('\n');
})()`

// broken says which amounts are cut, run out of the window, or stand on two lines.
const broken = `(() => {
  const faults = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!e.checkVisibility() || e.closest('.sr, svg, textarea, .text, .said')) continue;
    for (const m of walk.currentNode.data.matchAll(/[A-Z]{3}[ \u00a0]−?\d[\d,]*(\.\d+)?/g)) {
      const range = document.createRange();
      range.setStart(walk.currentNode, m.index);
      range.setEnd(walk.currentNode, m.index + m[0].length);
      const boxes = [...range.getClientRects()].filter((r) => r.width > 0);
      const said = m[0] + ' in ' + e.outerHTML.slice(0, 100);
      if (new Set(boxes.map((r) => Math.round(r.top))).size > 1) faults.add('on two lines: ' + said);
      for (const r of boxes) {
        if (r.right > document.documentElement.clientWidth + 0.5 || r.left < 0) faults.add('out of the window: ' + said);
        for (let up = e; up && up !== document.body; up = up.parentElement) {
          const how = getComputedStyle(up);
          const inside = up.getBoundingClientRect();
          if ((how.overflowX === 'hidden' || how.overflowX === 'clip') && (r.right > inside.right + 0.5 || r.left < inside.left - 0.5)) faults.add('cut: ' + said);
        }
      }
    }
  }
  return [...faults].join('\n');
})()`

// TestWordsAndAmountsOfPages goes through every page of a store in which much has happened: nothing that only a
// machine would say is on it, and no amount is cut or broken, at any width.
func TestWordsAndAmountsOfPages(t *testing.T) {
	c := new(testkit.Clock)
	w := newWorld(t, testkit.Options{Now: c.Now, Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Roles: map[string][]string{escalation.RoleOwner: {string(alice)}}},
	}}})
	w.registersCarol()
	sessions := []string{}
	items := []string{}
	asks := func(subject string, terms any) (*client.Session, *client.Session, string) {
		buyer, seller, id := w.asks(subject, "high", terms)
		sessions, items = append(sessions, string(buyer.ID())), append(items, id)
		return buyer, seller, id
	}
	rules := func(s *client.Session, id string, r client.Ruling) {
		w.said(w.as(alice).Session(s.ID()).Rule(w.Ctx, id, r))
	}

	_, _, _ = asks("Huge", huge)
	late, _, _ := asks("Late", plan)
	denied, _, id := asks("Denied", huge)
	rules(denied, id, client.Ruling{Decision: performatives.Denied, Comment: "no"})
	most := 123456789000.5
	bounded, _, id := asks("Bounded", huge)
	rules(bounded, id, client.Ruling{Decision: performatives.Approved, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD"}})
	w.said(bounded.Reject(w.Ctx, "prop_050", client.Rejection{Code: "budget_exceeded", Reason: "too dear"}))
	agreed, seller, id := asks("Agreed", huge)
	rules(agreed, id, client.Ruling{Decision: performatives.Guidance, Comment: "ask for a rebate"})
	w.said(seller.Withdraw(w.Ctx, "prop_050"))
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "p2", Type: "service-agreement", Subject: "Agreed", Terms: map[string]any{"price": 4200000, "currency": "EUR"}}))
	w.said(agreed.Accept(w.Ctx, "p2"))
	w.said(agreed.Close(w.Ctx, client.Closing{Outcome: performatives.Completed}))
	joined, _ := w.delegates(alice, client.Full)
	sessions = append(sessions, string(joined.ID()))
	over, _ := w.delegates(alice, client.Advisory)
	w.said(over.Close(w.Ctx, client.Closing{Outcome: performatives.Abandoned}))
	c.Advance(3 * time.Hour)
	w.rings(late)

	b := w.enters(alice, "")
	pages := []string{"", "?status=resolved", "?status=all", "home", "sessions", "sessions?state=ended", "agents", "insights", "settings", "checks", "checks?status=all", "checks/" + string(joined.ID()), "checks/" + string(over.ID())}
	for _, id := range items {
		pages = append(pages, "items/"+id)
	}
	for _, id := range sessions {
		pages = append(pages, "sessions/"+id)
	}
	for _, page := range pages {
		b.opens(page)
		b.holds(`document.readyState === "complete"`)
		if said := get[string](b, machine); said != "" {
			t.Errorf("/%s says\n%s", page, said)
		}
		for _, width := range widths {
			b.do(chromedp.EmulateViewport(width, 900))
			b.fits()
			if cut := get[string](b, broken); cut != "" {
				t.Errorf("/%s at %d:\n%s", page, width, cut)
			}
		}
		b.do(chromedp.EmulateViewport(1440, 900))
	}
	if view := string(w.calls(alice, api.SessionList.Name, api.ListSessions{})); !strings.Contains(view, "escalation_expired") || !strings.Contains(view, "budget_exceeded") && !strings.Contains(view, "123456789012.25") {
		t.Errorf("the store is not rich enough: %s", view)
	}
}
