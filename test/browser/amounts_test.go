//go:build browser

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// speaks has the browser ask in a language.
func (b *browser) speaks(language string) {
	b.Helper()
	agent := get[string](b, `navigator.userAgent`)
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: language})
		return err
	}))
}

var euros = map[string]any{"seats": 300, "pricePerMonth": 1900, "currency": "EUR"}

// widths are those of the windows that everything is shown in.
var widths = []int64{1440, 768, 390, 320}

// looks checks what is shown now at all widths, in light and dark.
func (b *browser) looks(where string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range widths {
			b.do(chromedp.EmulateViewport(width, 900))
			b.fits()
		}
		b.readable()
		b.accessible(where + ", " + scheme)
	}
	b.light()
	b.do(chromedp.EmulateViewport(1440, 900))
}

// TestAmountAsTyped shows how a number is understood in each person's language, asks which one is meant, and
// signs exactly that.
func TestAmountAsTyped(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", euros)
	b := w.enters(alice, "items/"+id)
	b.sees("#item")
	for _, c := range []struct{ language, typed, reads string }{
		{"en", "1900", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"de", "1.900", "one thousand nine hundred euros: 1.900,00 EUR"},
		{"fr", "1900", "one thousand nine hundred euros: 1 900,00 EUR"},
		{"de-CH", "1'900", "one thousand nine hundred euros: 1'900.00 EUR"},
		{"en", "nineteen hundred", "1,900.00 EUR"},
		{"en", "1900 USD", "Which one do you mean: 1,900.00 USD or 1,900.00 EUR?"},
		{"en", "abc", "not understood as a number"},
		{"en", "-5", "This is below zero: −5.00 EUR"},
		{"en", "19000", "ten times what was asked for, or more: 19,000.00 EUR, not 1,900.00 EUR"},
		{"en", "190", "a tenth of what was asked for, or less: 190.00 EUR, not 1,900.00 EUR"},
	} {
		b.speaks(c.language)
		get[bool](b, `(sessionStorage.clear(), true)`) // no draft
		b.opens("items/" + id)
		b.clicks("[data-open=approve]")
		b.reads("#approve-amount-read", "one thousand nine hundred euros")
		b.clicks("#approve-to-amount")
		b.types("#approve-amount", c.typed)
		b.reads("#approve-amount-read", c.reads)
	}
	b.speaks("en")
	b.opens("items/" + id)
	b.clicks("[data-open=approve]")
	b.clicks("#approve-to-amount")
	b.types("#approve-currency", "")
	b.presses(kb.Tab)
	b.types("#approve-amount", "1900")
	b.reads("#approve-amount-read", "The currency is missing: 1,900 of what?")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "The currency is missing")
	b.holds(`document.activeElement.id === "approve-currency"`)
	b.types("#approve-currency", "EUR")
	b.types("#approve-amount", "1.900")
	b.reads("#approve-amount-read", "Which one do you mean: 1,900.00 EUR or 1.90 EUR?")
	b.looks("an amount that can be two")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "Which one do you mean")
	if n := len(w.rulings(buyer)); n != 0 {
		t.Fatalf("%d rulings on an amount that can be two", n)
	}
	b.clicks("#approve-amount-read button:last-of-type") // 1.90 EUR
	b.reads("#approve-amount-read", "one euro and ninety cents: 1.90 EUR")
	b.reads("#approve-amount-read", "a tenth of what was asked for, or less")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .news", "a tenth of what was asked for, or less: 1.90 EUR, not 1,900.00 EUR. Sign again to confirm.")
	b.types("#approve-amount", "1,750.5")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	rulings := w.rulings(buyer)
	if len(rulings) != 1 || rulings[0].Authority == nil || *rulings[0].Authority.MaxAmount != 1750.5 || rulings[0].Authority.Currency != "EUR" {
		t.Errorf("signed was %+v", rulings)
	}
}

// TestAmountOfDeals filters deals by an amount as somebody types it, and asks where it can be two.
func TestAmountOfDeals(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.asks("Large", "high", map[string]any{"price": 2500, "currency": "EUR"})
	w.asks("Small", "high", map[string]any{"price": 25, "currency": "EUR"})
	w.asks("Dollars", "high", map[string]any{"price": 9000, "currency": "USD"})
	b := w.enters(alice, "")
	b.speaks("de")
	for typed, want := range map[string]int{"1.900": 2, "1900 EUR": 1, "1,90": 3, "10.000": 0} {
		b.opens("sessions")
		b.types("#least", typed)
		b.holds(`document.querySelector("#least-read .read") !== null`)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.holds(`location.search.includes("amount=")`)
		b.holds(`!document.body.innerText.includes("\\u00a0")`)
		b.holds(fmt.Sprintf(`document.querySelectorAll(".list tbody tr").length === %d`, want))
	}
	b.opens("sessions?amount=1,900")
	b.reads("#least-read", "Which one do you mean: 1.900 or 1,9?")
	b.looks("deals with an amount that can be two")
	b.clicks("#least-read a:last-of-type")
	b.reads("#least-read", "at least one point nine: 1,9")
	b.holds(`document.querySelectorAll(".list tbody tr").length === 3`)
}

// TestAmountOfCounter counters with a number as somebody types it, once it is clear.
func TestAmountOfCounter(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _ := w.delegates(alice, client.Full) // prop_041 keeps data for 90 days
	b := w.enters(alice, "")
	b.speaks("en")
	b.opens("checks/" + string(buyer.ID()))
	b.clicks("[data-form=join]")
	b.clicks("#join button[type=submit]")
	b.clicks("[data-form=counter]")
	days := `#counter [data-path='"terms.retentionDays"']`
	b.types(days, "1.000")
	b.reads("#counter .understood", "Which one do you mean: 1,000 or 1?")
	b.clicks("#counter button[type=submit]")
	b.reads("#counter .refused", "Which one do you mean")
	b.clicks("#counter .understood button")
	b.reads("#counter .understood", "one thousand: 1,000")
	b.clicks("#counter button[type=submit]")
	b.reads("#counter .refused", "ten times what was asked for, or more: Retention days 1,000, not 90. Sign again to confirm.")
	b.clicks("#counter button[type=submit]")
	b.reads("#toast", "Your offer was made")
	spoken := w.spoken(buyer, alice)
	counter, ok := spoken[len(spoken)-1].(*performatives.CounterBody)
	if !ok || !strings.Contains(string(counter.Terms), `"retentionDays":1000`) {
		t.Errorf("said was %+v", spoken[len(spoken)-1])
	}
}
