//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestAgentsPage finds agents as one types, by the keyboard, also on a phone. What agents say
// of themselves is no markup.
func TestAgentsPage(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.Principal(alpha, func(c *api.Card) {
		c.Name, c.Description = `Buyer <img src=x onerror="document.title='taken over'">`, "abc\u202efdp.exe"
		c.Capabilities = []string{"buy.compute"}
	})
	w.Principal(sales, func(c *api.Card) {
		c.Name, c.Pricing, c.QueueDepth = "Clouds", []byte(`{"amount":"0.05","currency":"USD","per":"hour"}`), []byte("3")
		c.Skills = []discovery.Skill{{ID: "vm", Name: "Virtual machines"}}
	})
	w.opens("a session that stays open")
	refused, err := w.as(sales).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "one that is rejected"})
	testkit.Must(w, err)
	w.said(w.as(alpha).Session(refused.ID()).Reject(w.Ctx, "inv", client.Rejection{Reason: "no"}))
	b := w.enters(alice, "")
	b.clicks(`nav a[href="agents"]`)
	b.reads("#agents", "Clouds")
	b.reads("#agents", "0.05 USD per hour")
	b.reads("#agents", "3 tasks")
	b.reads("#agents", "1 open, 1 rejected")
	b.reads("#agents", `<img src=x onerror=`)
	b.accessible("/agents")
	b.readable()
	get[string](b, `(document.querySelector("#agent-search").focus(), "")`)
	b.do(chromedp.SendKeys(css("#agent-search"), "virtual"))
	b.holds(`document.querySelectorAll("#agents tbody tr").length === 1`)
	b.reads("#agents", "Virtual machines")
	b.holds(`document.querySelector("#found").textContent === "1 agent" && location.search === "?search=virtual" && document.activeElement.id === "agent-search"`)
	b.do(chromedp.SendKeys(css("#agent-search"), "x"))
	b.reads("#agents", "No agent matches")
	b.accessible("/agents without a match")
	const calls = `(async () => {
		const whole = window.fetch, asked = [], held = [];
		const nextTask = () => new Promise(done => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); });
		window.fetch = (url, o) => { asked.push(new URL(url).search); return new Promise(go => held.push(() => go(whole(url, o)))); };
		for (const word of ["c", "cl", "clouds"]) {
			document.querySelector("#agent-search").value = word;
			document.querySelector("#find").requestSubmit();
			await nextTask();
		}
		const first = asked.length;
		window.fetch = (url, o) => { asked.push(new URL(url).search); return whole(url, o); };
		held.forEach(go => go());
		window.asked = asked;
		return first;
	})()`
	if n := get[int](b, calls); n != 1 {
		t.Errorf("it asks %d times before it is answered once", n)
	}
	b.holds(`asked.join() === "?search=c,?search=clouds" && document.querySelectorAll("#agents tbody tr").length === 1 && location.search === "?search=clouds"`)
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.opens("agents")
	b.reads("#agents", "Clouds")
	b.fits()
	b.accessible("/agents on a phone")
	if title := get[string](b, `document.title`); title != "Agents · parley" {
		t.Errorf("the title is %q", title)
	}
}
