//go:build browser

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// windows are those of a computer, a tablet and two phones.
var windows = []struct{ wide, high int64 }{{1440, 900}, {768, 1024}, {390, 844}, {320, 640}}

// The pages of people who run an organisation, of a store that has something of everything: nothing runs out
// of the window or is cut, everything can be read in light and dark, and axe finds nothing.
func TestDealPages(t *testing.T) {
	olive, ops := performatives.Agent("human://acme.example/olive"), performatives.Agent("human://acme.example/oscar")
	w := newWorld(t, testkit.Options{Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Roles: map[string][]string{escalation.RoleOwner: {string(olive), string(alice)}, escalation.RoleOperator: {string(ops), string(alice)}}},
	}}})
	w.fillsQueue()
	item := w.backAndForth()
	agreed := w.agrees()
	w.rejects()

	b := w.enters(alice, "")
	b.sees(".row")
	for i, size := range windows {
		b.do(chromedp.EmulateViewport(size.wide, size.high))
		tones := []bool{false, true}
		if 0 < i && i < len(windows)-1 { // colours are the same in all
			tones = tones[:1]
		}
		for _, path := range []string{"items/" + item, "sessions/" + agreed, "home", "sessions", "agreements", "agents", "operator"} {
			b.opens(path)
			b.sees("#main h1")
			for _, dark := range tones {
				if b.light(); dark {
					b.dark()
				}
				b.fits()
				b.uncut()
				if share := get[float64](b, `(document.querySelector('.decide')?.offsetHeight ?? 0) / innerHeight`); share > 0.3 {
					t.Errorf("at %d pixels the decision takes %v of the window", size.wide, share)
				}
				b.readable()
				b.accessible(fmt.Sprintf("%s at %d, dark: %v", path, size.wide, dark))
			}
			b.light()
		}
	}
	b.opens("sessions/" + agreed)
	b.clicks("[data-do=verify]")
	b.reads(".verdict.good", "Genuine: all")
	b.reads("#item-title", "Gas for winter")
	if letters := get[float64](b, `Math.min(...[...document.querySelectorAll('.chart text')].map((t) => t.getBoundingClientRect().height))`); letters < 11 {
		t.Errorf("at 320 pixels a picture has letters of %v pixels", letters)
	}
}

// uncut asserts that no amount is cut.
func (b *browser) uncut() {
	b.Helper()
	if cut := get[string](b, `[...document.querySelectorAll('.sum, .amount, td.n, .worth b, .value, .stake')].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== 'visible').map((e) => e.outerHTML.slice(0, 120)).join('\n')`); cut != "" {
		b.Errorf("cut: %s", cut)
	}
}

// agrees is a deal with a pause and a delegation that ended in an agreement.
func (w *world) agrees() string {
	w.Helper()
	legal, clerk := performatives.Agent("agent://acme.example/legal/reader"), performatives.Agent("agent://acme.example/legal/clerk-of-the-reader-with-a-long-name")
	w.registers(legal)
	w.registers(clerk)
	buyer, seller := w.opens("Gas for winter")
	price := func(n float64) map[string]any {
		return map[string]any{"total": n, "currency": "EUR", "megawattHours": n / 100}
	}
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "g1", Type: "supply", Subject: "Gas", Terms: price(1_234_567_890.5)}))
	_, err := buyer.Delegate(w.Ctx, legal, client.Delegation{Scope: "Read the small print", Authority: client.Limited})
	testkit.Must(w, err)
	asked, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, About: "g1", Context: "It is dear."})
	testkit.Must(w, err)
	most := 1_100_000_000.0
	w.said(w.as(alice).Session(buyer.ID()).Rule(w.Ctx, string(asked.Message), client.Ruling{Decision: performatives.Modified, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "EUR"}}))
	w.said(buyer.Counter(w.Ctx, "g1", client.Proposal{ID: "g2", Terms: price(900_000_000)}))
	w.said(seller.Counter(w.Ctx, "g2", client.Proposal{ID: "g3", Terms: price(1_050_000_000)}))
	w.said(buyer.Accept(w.Ctx, "g3"))
	w.said(seller.Close(w.Ctx, client.Closing{Outcome: performatives.Completed}))
	return string(buyer.ID())
}

// rejects is a deal that came to nothing.
func (w *world) rejects() {
	w.Helper()
	buyer, seller := w.opens("A bridge")
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "b1", Type: "works", Terms: map[string]any{"price": 5, "currency": "USD"}}))
	w.said(buyer.Reject(w.Ctx, "b1", client.Rejection{Code: "policy_violation", Reason: "no bridges"}))
	w.said(buyer.Close(w.Ctx, client.Closing{Outcome: performatives.Abandoned}))
}
