//go:build browser

package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// TestOwnKeys has a human revoke the key of another browser, then of their own.
func TestOwnKeys(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	phone := w.enters(alice, "")
	laptop := w.enters(alice, "")
	laptop.opens("settings")
	laptop.reads(".devices li", "this browser")
	laptop.holds(`document.querySelectorAll(".devices li").length === 2`)
	laptop.accessible("/settings")
	laptop.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	laptop.fits()
	laptop.accessible("/settings on a phone")
	laptop.do(chromedp.EmulateViewport(1440, 900))
	laptop.clicks("[data-revoke=revoke-1]")
	laptop.sees("#revoke-1[open]")
	laptop.accessible("the question before a key is revoked")
	laptop.clicks("#revoke-1 button[type=submit]")
	laptop.holds(`document.querySelectorAll(".devices li").length === 1`)
	phone.opens("")
	phone.reads("#refused", "not enrolled")

	laptop.clicks("[data-revoke=revoke-1]")
	laptop.reads("#revoke-1", "you will be signed out")
	laptop.clicks("#revoke-1 button[type=submit]")
	laptop.sees("#code")
	laptop.holds(`document.querySelector("#refused").textContent === ""`) // it has forgotten the key
}

// TestSortsAndSaves sorts the queue, and keeps a filter under a name across reloads.
func TestSortsAndSaves(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	for _, price := range []int{9000, 15000, 700} {
		w.asks(fmt.Sprintf("For %d", price), "high", map[string]any{"pricePerMonth": price, "currency": "USD"})
	}
	b := w.enters(alice, "")
	order := func(want string) {
		t.Helper()
		b.holds(`[...document.querySelectorAll(".row .what b")].map((e) => e.textContent.slice(4)).join() === "` + want + `"`)
	}
	order("9000,15000,700")
	b.clicks(`[data-choice=amount]`)
	order("15000,9000,700")
	b.clicks(`[data-choice=newest]`)
	order("700,15000,9000")
	b.clicks(`[data-choice=high]`)
	b.holds(`location.search.includes("urgency=high") && location.search.includes("sort=newest")`)

	b.clicks("#save")
	b.sees("#save-filter[open]")
	b.accessible("saving a filter")
	b.types("#filter-name", "Urgent first")
	b.presses(kb.Enter)
	b.reads("#saved a", "Urgent first")
	b.holds(`document.activeElement.id === "forget"`)
	b.opens("")
	order("9000,15000,700")
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.fits()
	b.accessible("the queue with a saved filter, on a phone")
	b.do(chromedp.EmulateViewport(1440, 900))
	b.clicks("#saved a")
	order("700,15000,9000")
	b.clicks("#forget")
	b.holds(`document.querySelector("#saved").hidden`)
	b.do(chromedp.Reload())
	b.sees("#save")
	b.holds(`document.querySelector("#saved").hidden`)
}

// TestTimeZone shows and reads times in the zone that the human has chosen.
func TestTimeZone(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "")
	b.opens("settings")
	b.holds(`document.querySelector("#zone").options.length > 100`)
	get[bool](b, `(() => { const z = document.querySelector("#zone"); z.value = "Australia/Adelaide"; z.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`)
	b.reads("#toast", "Saved")
	b.opens("items/" + id)
	b.clicks("[data-open=approve]")
	b.reads("#approve [data-zone]", "Australia/Adelaide")
	const far = "2099-03-01T10:00"
	get[bool](b, `(() => { const f = document.querySelector("#approve-until"); f.value = "`+far+`"; return true; })()`)
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	b.reads("#item > .notice", "2099, 10:00")
	rulings := w.rulings(buyer)
	if want := time.Date(2099, 2, 28, 23, 30, 0, 0, time.UTC); len(rulings) != 1 || rulings[0].Authority == nil || rulings[0].Authority.ValidUntil == nil || !rulings[0].Authority.ValidUntil.Equal(want) {
		t.Errorf("signed was %+v", rulings)
	}
}

// TestDisplayNames shows the names that the registry has, beside those that the protocol has.
func TestDisplayNames(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registers(bob, func(c *api.Card) { c.Name = "Robert Tables" })
	w.registers(sales, func(c *api.Card) { c.Name = "Alice, your own CFO" })
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".people", "Robert Tables (bob)")
	b.reads(".parties", "Alice, your own CFO (sales/enterprise) clouds.example")
	b.reads(".row .who", "with Alice, your own CFO (sales/enterprise) · clouds.example")
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.fits()
	b.opens("sessions")
	b.fits()
}

// TestOutOfOffice has a colleague stand in for a human, who then is back.
func TestOutOfOffice(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	b := w.enters(alice, "")
	b.opens("settings")
	b.clicks("#absence button.primary")
	b.holds(`document.querySelector("#away-until").matches(":invalid") && !document.querySelector(".dev")`) // it has an end
	get[bool](b, `(() => { document.querySelector("#away-until").value = "2020-01-01T10:00"; return true; })()`)
	b.clicks("#absence button.primary")
	b.reads("#absence .refused", "not over yet")
	get[bool](b, `(() => { document.querySelector("#away-until").value = new Date(Date.now() + 864e5).toISOString().slice(0, 16); return true; })()`)
	b.clicks("#absence button.primary")
	b.reads(".dev", "You are away until")
	b.reads(".dev", "bob stands in")
	b.accessible("/settings, out of office")
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.fits()
	b.do(chromedp.EmulateViewport(1440, 900))

	_, _, id := w.asks("Enterprise plan", "high", plan)
	stand := w.enters(bob, "items/"+id)
	stand.reads("#item > .notice", "Handed over to you, standing in for alice.")
	stand.reads(".events", "assigned → bob, who stands in for alice")
	stand.reads(".people", "bob stands in")
	stand.reads(".row .held", "you")
	stand.accessible("an item of somebody who is away")
	stand.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	stand.fits()

	b.opens("settings")
	b.clicks("#back")
	b.holds(`!document.querySelector("#back") && !document.querySelector(".dev")`)
}

// TestLocks locks every page after a time without input, until the key is asked again.
func TestLocks(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.types("#comment", "half a note")
	other, closes := b.tab()
	defer closes()
	other.opens("sessions")
	other.sees(".list")
	const idle = `localStorage.setItem("parley-input", String(Date.now() - 16 * 60e3))`
	get[bool](b, `(`+idle+`, true)`)
	b.reads("#again", "Locked: there was no input for a while.")
	b.accessible("a locked page")
	other.reads("#again", "Locked")
	other.opens("") // the key alone does not sign in now
	other.reads("#again", "Locked")
	b.clicks("[data-do=again]")
	b.holds(`document.querySelector("#comment")?.value === "half a note"`)
	other.opens("settings")
	other.sees("#idle")
	get[bool](other, `(() => { const f = document.querySelector("#idle"); f.value = "0"; f.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`)
	other.reads("#toast", "Saved")
	get[bool](other, `(`+idle+`, document.dispatchEvent(new Event("visibilitychange")), true)`)
	b.holds(`JSON.parse(localStorage.getItem("parley-preferences human://acme.example/alice")).idle === 0 && !!document.querySelector("#item")`)
}

// TestNotifies shows a desktop notification of what the human is to decide, once they
// have asked for it, without a word of the counterparty.
func TestNotifies(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	b := w.enters(alice, "")
	const fake = `(() => {
  window.shown = [];
  window.Notification = class { static permission = 'granted'; static requestPermission = async () => 'granted'; constructor(title, o) { shown.push(title + ': ' + o.body); } };
  window.AudioContext = class { constructor() { shown.push('a sound'); throw new Error('no sound'); } };
  return true;
})()`
	b.reads(".live", "live")
	get[bool](b, fake)
	_, _, quiet := w.asks("Not asked for", "low", plan)
	b.sees(`.row[data-id="` + quiet + `"]`)
	b.opens("settings")
	b.sees("#notify")
	get[bool](b, fake)
	b.clicks("#notify")
	b.reads("#notified", "This browser shows a notification")
	b.holds(`!document.querySelector("#sound").checked`)
	b.opens("")
	b.reads(".live", "live")
	get[bool](b, fake)
	w.asks("Their words", "high", plan)
	b.holds(`shown.length > 0`)
	if got := get[string](b, `shown.join("; ")`); got != "Decision needed (high): procurement/alpha acme.example · USD 15,000" {
		t.Errorf("it shows %q", got)
	}
}
