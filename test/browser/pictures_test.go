//go:build browser

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestPictures makes the pictures of docs/inbox, with -screenshots: a morning's
// queue, and an item that went back and forth. Without, it is a look at all of
// it, in light, dark, and on a phone: nothing runs out of the window, and what
// is to be read has contrast enough.
func TestPictures(t *testing.T) {
	grace := performatives.Agent("human://acme.example/grace")
	w := newWorld(t, testkit.Options{Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {
			Groups: map[string][]performatives.Agent{"procurement": {alice, bob}, "finance": {grace}},
			Rules: []*escalation.Rule{{
				Name: "large-contracts", Match: escalation.Match{Amount: &escalation.Range{Min: 10000, Currency: "USD"}},
				Asked: escalation.Asked{Level: "Procurement", Approvers: []string{"procurement"}},
				Chain: []escalation.Asked{{Level: "Finance", Approvers: []string{"finance"}}},
			}},
		},
	}}})
	w.registers(alice, func(c *api.Card) { c.Registry.Limits = []performatives.Limit{{Currency: "USD", MaxAmount: 50000}} })
	w.registers(grace, func(c *api.Card) { c.Registry.Limits = []performatives.Limit{{Currency: "USD", MaxAmount: 500000}} })
	w.fillsQueue()
	id := w.backAndForth()

	b := w.enters(alice, "")
	b.sees(".row")
	b.reads(".live", "live")
	b.fits()
	b.photographs("queue-light")
	b.clicks(`.row[data-id="` + id + `"]`)
	b.sees("#item")
	b.reads("#item .title", "Enterprise plan")
	b.reads(".conversation .offered dd.changed", "+15.38 %")
	b.reads(".conversation .offered dt.changed", "Price per month")
	if gaps := get[float64](b, `Math.max(...[...document.querySelectorAll(".said")].map(said => said.offsetHeight - [...said.children].reduce((sum, part) => sum + part.offsetHeight, 0)))`); gaps > 20 {
		t.Errorf("a quotation has %v pixels of nothing", gaps)
	}
	b.fits()
	b.photographs("item-light")
	get[bool](b, `(document.querySelector("#conversation").scrollIntoView(), scrollBy(0, -120), true)`)
	b.photographs("conversation-light")
	b.clicks("[data-open=approve]")
	b.sees("#approve[open]")
	b.photographs("approve-light")
	b.presses("\x1b")
	b.readable()

	b.dark()
	get[bool](b, `(scrollTo(0, 0), true)`)
	b.photographs("item-dark")
	b.readable()
	b.presses("u")
	b.photographs("queue-dark")
	b.readable()

	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2)))
	b.light()
	b.fits()
	b.photographs("queue-phone")
	b.clicks(`.row[data-id="` + id + `"]`)
	b.sees("#item")
	b.fits()
	b.photographs("item-phone")
	b.opens("sessions")
	b.sees(".list")
	b.fits()

	b.do(chromedp.EmulateViewport(1440, 900))
	b.opens("settings")
	b.sees("#preferences")
	b.readable()
	b.photographs("settings-light")
}

// fillsQueue asks for decisions of many kinds.
func (w *world) fillsQueue() {
	w.Helper()
	for _, ask := range []struct {
		subject, urgency, reason, context string
		terms                             map[string]any
	}{
		{"Failover capacity, Frankfurt, 72 hours", client.Critical, client.AuthorityLimit, "The primary region is degraded and the spot price is above my limit.", map[string]any{"amount": 48200, "currency": "EUR", "vcpus": 1600, "hours": 72}},
		{"Penetration test of the billing service", client.High, client.PolicyAmbiguous, "The policy says that vendors need an NDA; this one offers its own wording.", map[string]any{"price": 18500, "currency": "USD", "days": 10}},
		{"Customer data export to a sub-processor", client.High, client.AdversarialDetected, "The counterparty changed the recipient of the data twice within three messages.", map[string]any{"records": 120000, "recipient": "agent://broker.example/data"}},
		{"Translation of the user manual, 14 languages", client.Medium, client.ConfidenceLow, "I cannot judge whether the sample translations are good.", map[string]any{"price": 7300, "currency": "EUR", "languages": 14}},
		{"Office coffee, yearly contract", client.Low, client.AuthorityLimit, "Yearly contracts are not mine to sign.", map[string]any{"pricePerYear": 2160, "currency": "EUR", "kilograms": 96}},
		{"Freight Rotterdam to Gdynia, 40 ft, weekly", client.Medium, client.AuthorityLimit, "Beyond the quarter's budget.", map[string]any{"total": 31750.5, "currency": "EUR", "containers": 12}},
	} {
		buyer, seller := w.opens("Procurement")
		w.said(seller.Propose(w.Ctx, client.Proposal{ID: "offer", Type: "service-agreement", Subject: ask.subject, Terms: ask.terms}))
		w.said(buyer.Escalate(w.Ctx, client.Escalation{Reason: ask.reason, Urgency: ask.urgency, About: "offer", Context: ask.context}))
	}
}

// backAndForth is a negotiation with counter-offers and a terms schema, that
// ends at a human's.
func (w *world) backAndForth() string {
	w.Helper()
	number := func(title, about string) map[string]any {
		return map[string]any{"type": "number", "minimum": 0, "title": title, "description": about}
	}
	_, err := w.as(sales).PutSchema(w.Ctx, "enterprise-plan-v1", map[string]any{
		"type": "object", "properties": map[string]any{
			"seats": number("Seats", "Named users who may sign in"), "pricePerMonth": number("Price per month", "Net, for all seats"),
			"currency":   map[string]any{"type": "string", "title": "Currency"},
			"support":    map[string]any{"type": "string", "title": "Support hours", "enum": []string{"8/5", "16/7", "24/7"}},
			"termMonths": number("Minimum term, months", "Before either side may leave"),
		},
	})
	testkit.Must(w, err)
	s, err := w.as(sales).Invite(w.Ctx, client.Invitation{
		With: []performatives.Agent{alpha}, Purpose: "Offer an enterprise plan", MaxDuration: 24 * time.Hour, Schemas: []string{"enterprise-plan-v1"},
	})
	testkit.Must(w, err)
	view, err := w.as(sales).View(w.Ctx, s.ID())
	testkit.Must(w, err)
	buyer := w.as(alpha).Session(s.ID())
	w.said(buyer.Accept(w.Ctx, view.Invitation.Proposal))
	terms := func(seats, price, months int, support string) map[string]any {
		return map[string]any{"seats": seats, "pricePerMonth": price, "currency": "USD", "support": support, "termMonths": months}
	}
	w.said(s.Propose(w.Ctx, client.Proposal{ID: "prop_049", Type: "service-agreement", Subject: "Enterprise plan", Schema: "enterprise-plan-v1", Terms: terms(250, 12500, 24, "16/7")},
		client.Note("Our standard plan for companies of your size.")))
	w.said(buyer.Counter(w.Ctx, "prop_049", client.Proposal{ID: "prop_049b", Schema: "enterprise-plan-v1", Terms: terms(300, 13000, 12, "24/7")},
		client.Because("We need all teams on it, and support around the clock.")))
	w.said(s.Counter(w.Ctx, "prop_049b", client.Proposal{ID: "prop_050", Schema: "enterprise-plan-v1", Subject: "Enterprise plan", Terms: terms(300, 15000, 12, "24/7")},
		client.Because("Around-the-clock support and the shorter term have their price. This is approved by your CFO already.")))
	receipt, err := buyer.Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Urgency: client.High, About: "prop_050",
		Context:         "Proposed commitment of $15,000/month exceeds my authorized spending limit of $5,000/month. The term and the support hours are as we asked; the price is 2,000 above our counter-offer.",
		SuggestedAction: "Approve the commitment or provide a revised budget ceiling",
	})
	testkit.Must(w, err)
	id := string(receipt.Message)
	w.calls(bob, api.EscalationComment.Name, api.CommentEscalation{Escalation: id, Text: "Legal has seen the 12-month clause; fine with them."})
	return id
}

// small is a picture of 256 colours: of each shade the most frequent, of the most frequent shades.
func small(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	bounds := full.Bounds()
	shades, counts := map[[3]uint32]map[color.RGBA]int{}, map[[3]uint32]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			shade := [3]uint32{uint32(c.R >> 4), uint32(c.G >> 4), uint32(c.B >> 4)}
			if shades[shade] == nil {
				shades[shade] = map[color.RGBA]int{}
			}
			shades[shade][c]++
			counts[shade]++
		}
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b [3]uint32) int { return cmp.Or(counts[b]-counts[a], slices.Compare(a[:], b[:])) })
	var colours color.Palette
	for _, shade := range order[:min(256, len(order))] {
		all := shades[shade]
		colours = append(colours, slices.SortedFunc(maps.Keys(all), func(a, b color.RGBA) int {
			return cmp.Or(all[b]-all[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
		})[0])
	}
	few := image.NewPaletted(bounds, colours)
	draw.Draw(few, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}
