//go:build browser

package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/test/testkit"
)

// owes makes an agreement by which the seller owes the buyer boxes of cups, and joins carol, to whom the
// buyer delegates full authority in its browser.
func (w *world) owes(b *browser) (buyer, seller *client.Session) {
	w.Helper()
	buyer, seller = w.opens("Cups for the canteen")
	w.said(buyer.Observe(w.Ctx, "on we go", nil))
	w.said(buyer.Delegate(w.Ctx, carol, client.Delegation{Scope: "Answer what is delivered", Authority: client.Full}))
	b.opens("checks/" + string(buyer.ID()))
	b.clicks("[data-form=join]")
	b.clicks("#join button[type=submit]")
	b.reads("#check .chip", "joined")
	boxes, due := 50.0, time.Now().Add(time.Hour)
	w.said(seller.Commit(w.Ctx, client.Commitment{ID: "k1", Obligations: []performatives.Obligation{
		{ID: "cups", Party: sales, Action: "Deliver boxes of cups to the canteen", Deadline: &due, Quantity: &boxes, Unit: "boxes", Amount: &performatives.Worth{Value: 123456789012.25, Currency: "USD"}},
	}}))
	w.said(buyer.Accept(w.Ctx, "k1"))
	return buyer, seller
}

// TestDelivery has a human compare a file with the evidence of a delivery, accept a part and reject the
// rest, by keyboard and signed in the browser. A delivery that another one replaces cannot be accepted.
func TestDelivery(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	b := w.enters(carol, "")
	buyer, seller := w.owes(b)
	note, other := filepath.Join(t.TempDir(), "note.pdf"), filepath.Join(t.TempDir(), "other.pdf")
	testkit.Must(t, os.WriteFile(note, []byte("45 boxes"), 0o600))
	testkit.Must(t, os.WriteFile(other, []byte("50 boxes"), 0o600))
	sum := sha256.Sum256([]byte("45 boxes"))
	delivers := func(quantity float64) {
		t.Helper()
		w.said(seller.Inform(w.Ctx, performatives.Result, performatives.ResultData{
			CommitmentID: "k1", Obligation: "cups", Quantity: &quantity,
			Evidence: []performatives.Evidence{{Kind: "delivery note", Digest: performatives.Hash("sha256:" + hex.EncodeToString(sum[:])), Note: "signed at the gate"}},
		}))
	}
	delivers(44)
	b.opens("due")
	b.reads("#soon ~ .list .chip", "Delivered, to be answered")
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, 900))
		b.fits()
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.accessible("what is due")
	b.clicks(".list .what a")
	b.reads("#obligation-title", "Deliver boxes of cups")
	b.reads(".due .when", "counts as accepted")
	b.reads(".live", "live")
	b.presses("a")
	b.sees("#accept[open]")
	delivers(45)
	b.reads("#accept .refused", "This has changed")
	b.presses("\x1b")
	b.reads("#delivered ~ p", "45")

	b.do(chromedp.SetUploadFiles(css("#file"), []string{other}))
	b.reads("#compared", "other.pdf is none of the evidence")
	b.do(chromedp.SetUploadFiles(css("#file"), []string{note}))
	b.reads("#compared", "note.pdf is the same as the evidence")
	b.photographs("obligation-light")
	b.reads("#evidence .chip", "the file is the same")
	delivers(44)
	b.reads("#delivered ~ p", "44")
	b.reads("#compared", "note.pdf is the same as the evidence") // the page was drawn again
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, 900))
		b.fits()
		if cut := get[string](b, broken); cut != "" {
			t.Errorf("at %d: %s", width, cut)
		}
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.accessible("an obligation")
	if said := get[string](b, machine); said != "" {
		t.Errorf("the page says %s", said)
	}
	b.dark()
	b.accessible("an obligation in the dark")
	b.light()

	b.presses("a")
	b.sees("#accept[open]")
	b.accessible("accepting")
	b.types("#accept-quantity", "46")
	b.signs()
	b.sees("#accept[open] input:invalid")
	b.types("#accept-quantity", "40")
	b.signs()
	b.reads(".title .chip", "Partly fulfilled")
	delivers(10)
	b.reads(".title .chip", "Delivered, to be answered") // by itself
	b.presses("d")
	b.sees("#reject[open]")
	b.types("#reject-reason", "Five boxes are missing")
	b.signs()
	b.reads(".title .chip", "Partly fulfilled")
	spoken := w.spoken(buyer, carol)
	rejected, ok := spoken[len(spoken)-1].(*performatives.RejectBody)
	if !ok || rejected.Code != "incomplete" || rejected.Reason != "Five boxes are missing" {
		t.Errorf("she said %+v", spoken[len(spoken)-1])
	}
	b.presses("u")
	b.reads(".list .n", "10 of 50 boxes")
	b.opens("")
	b.reads("#due-now", "1 obligation is due within seven days")
	b.reads("#due-now .row", "10 of 50 boxes")
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, 900))
		b.fits()
		b.uncut()
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.accessible("the queue with what is due")
	b.presses("j")
	b.holds(`document.activeElement.matches("#due-now .row")`)
	b.presses(kb.Enter)
	b.reads("#obligation-title", "Deliver boxes of cups")
}

// TestLifeOfADeal has a human see a deal to its end in the pages: a part is accepted, a change of the deadline
// too, the deadline passes, she disputes the breach with a file as evidence, a human arbiter decides, she waives
// the rest and reports her own delivery by a dropped file. The evidence of it verifies.
func TestLifeOfADeal(t *testing.T) {
	const judy = performatives.Agent("human://chamber.example/judy")
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	w.registers(judy)
	b := w.enters(carol, "")
	s, err := w.as(sales).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "Cups", Policy: map[string]any{"arbiter": judy}})
	testkit.Must(t, err)
	buyer := w.as(alpha).Session(s.ID())
	w.said(buyer.Accept(w.Ctx, "inv"))
	w.said(buyer.Observe(w.Ctx, "on we go", nil))
	w.said(buyer.Delegate(w.Ctx, carol, client.Delegation{Scope: "Answer what is delivered", Authority: client.Full}))
	b.opens("checks/" + string(s.ID()))
	b.clicks("[data-form=join]")
	b.clicks("#join button[type=submit]")
	b.reads("#check .chip", "joined")
	boxes, some, due := 50.0, 40.0, time.Now().Add(time.Hour)
	w.said(s.Commit(w.Ctx, client.Commitment{ID: "k1", Obligations: []performatives.Obligation{
		{ID: "cups", Party: sales, Action: "Deliver cups", Deadline: &due, Quantity: &boxes, Unit: "boxes"},
		{ID: "pay", Party: alpha, Action: "Pay for the cups", VerificationMethod: "the bank's statement"},
	}}))
	w.said(buyer.Accept(w.Ctx, "k1"))
	w.said(s.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "cups", Quantity: &some}))
	photo := filepath.Join(t.TempDir(), "empty-shelf.jpg")
	testkit.Must(t, os.WriteFile(photo, []byte("a photo"), 0o600))

	cups := "sessions/" + string(s.ID()) + "/obligation?commitment=k1&obligation=cups"
	b.opens(cups)
	b.reads(".live", "live")
	b.presses("a")
	b.sees("#accept[open]")
	b.signs()
	b.reads(".title .chip", "Partly fulfilled")
	b.presses("m")
	b.sees("#amend[open]")
	b.accessible("amending")
	b.types("#amend-quantity", "8")
	b.types("#amend-message", "two boxes were spare")
	b.signs()
	b.reads("#change-0 ~ .conversation", "8")
	soon := time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
	w.said(s.Say(w.Ctx, &performatives.ProposeBody{
		ProposalID: "sooner", Type: performatives.Amendment, Subject: "today", ReferenceID: "k1",
		Terms: jsontext.Value(`{"obligations":[{"id":"cups","party":"` + string(sales) + `","action":"Deliver the rest","quantity":10,"unit":"boxes","deadline":"` + soon + `"}]}`),
	}))
	b.clicks("[data-form=take-1]") // that it comes is shown by itself
	b.sees("#take-1[open]")
	b.accessible("accepting a change")
	b.signs()
	b.reads(".title .chip", "Breached") // by itself
	b.presses("o")
	b.sees("#dispute[open]")
	b.reads("#dispute .sentence", "You dispute the breach of Deliver the rest")
	b.accessible("disputing")
	b.types("#dispute-claim", "Ten boxes are missing")
	b.do(chromedp.SetUploadFiles(css("#dispute-files"), []string{photo}))
	b.do(chromedp.Focus(css("#dispute-claim")))
	b.signs()
	b.reads(".title .chip", "Disputed")
	b.clicks("#disputed ~ .notes a")
	b.reads("#dispute-title", "Ten boxes are missing")
	b.reads("#evidence", "empty-shelf.jpg")
	b.do(chromedp.SetUploadFiles(css("#file"), []string{photo}))
	b.reads("#compared", "empty-shelf.jpg is the same as the evidence")
	w.said(s.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: w.dispute(buyer), Position: performatives.OfferOf, Remedy: "half the price"}))
	b.reads(".conversation", "half the price") // by itself
	b.sees("[data-form=take-offer]")

	j := w.enters(judy, "")
	j.opens("disputes")
	j.accessible("disputes")
	j.clicks(".list .what a")
	j.reads("#dispute-title", "Ten boxes are missing")
	for _, width := range widths {
		j.do(chromedp.EmulateViewport(width, 900))
		j.fits()
	}
	j.do(chromedp.EmulateViewport(1440, 900))
	j.accessible("a dispute")
	if said := get[string](j, machine); said != "" {
		t.Errorf("the page says %s", said)
	}
	j.presses("r")
	j.sees("#rule[open]")
	j.do(chromedp.SetValue(css("#rule-decision"), "split"))
	j.types("#rule-reason", "They were packed badly")
	w.said(s.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: w.dispute(buyer), Position: performatives.Deny}))
	j.reads("#rule .refused", "This has changed")
	j.signs()
	j.reads("#rule .refused", "dispute has changed since it was shown to you")
	j.presses("\x1b")
	j.reads(".conversation", "deny")
	j.presses("r")
	j.sees("#rule[open]")
	j.do(chromedp.SetValue(css("#rule-decision"), "split"))
	j.types("#rule-reason", "They were packed badly")
	j.signs()
	j.reads(".title .chip", "Split")
	j.reads(".conversation", "They were packed badly")
	b.reads(".title .chip", "Split") // by itself

	b.opens(cups)
	b.reads(".live", "live")
	b.presses("w")
	b.sees("#waive[open]")
	b.accessible("waiving")
	b.types("#waive-reason", "It was not worth it")
	b.signs()
	b.reads(".title .chip", "Waived")
	b.opens("sessions/" + string(s.ID()) + "/obligation?commitment=k1&obligation=pay")
	b.reads(".live", "live")
	get[bool](b, `(() => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["paid"], "statement.pdf", { type: "application/pdf" }));
  return document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
})()`)
	b.sees("#deliver[open]")
	paid := sha256.Sum256([]byte("paid"))
	b.holds(`document.querySelector("#deliver-evidence").value.includes("` + hex.EncodeToString(paid[:]) + `  statement.pdf")`)
	b.accessible("reporting a delivery")
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, 900))
		b.fits()
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.signs()
	b.reads(".title .chip", "Delivered, to be answered")
	b.reads("#evidence", "statement.pdf")
	spoken := w.spoken(buyer, carol)
	told, ok := spoken[len(spoken)-1].(*performatives.InformBody)
	if !ok {
		t.Fatalf("she said %+v", spoken[len(spoken)-1])
	}
	result, _ := told.Delivery()
	if e := result.Evidence; len(e) != 1 || e[0].Digest != performatives.Hash("sha256:"+hex.EncodeToString(paid[:])) || e[0].MediaType != "application/pdf" || e[0].Note != "statement.pdf" {
		t.Errorf("she delivered with the evidence %+v", e)
	}
	view, err := s.View(w.Ctx)
	testkit.Must(t, err)
	w.said(s.Accept(w.Ctx, view.Owed[1].Delivery.Reference))
	b.reads(".title .chip", "Fulfilled") // by itself
	w.said(s.Close(w.Ctx, client.Closing{Outcome: performatives.Completed}))

	b.opens("sessions/" + string(s.ID()))
	b.reads("#record ~ .print", "Download the evidence")
	bundle := get[string](b, `fetch(document.querySelector("a[href$='/evidence']").href).then((r) => r.text())`)
	var standing []string
	report := evidence.Verify([]byte(bundle), evidence.Trust{Trust: agreement.Trust{Broker: w.Server.Broker.Command.Key()}})
	for _, o := range report.Bundle.Obligations {
		standing = append(standing, o.ID+" "+o.Status)
	}
	if disputes := report.Bundle.Disputes; len(report.Faults) > 0 || !slices.Equal(standing, []string{"cups waived", "pay fulfilled"}) || len(disputes) != 1 || disputes[0].Status != performatives.Split {
		t.Errorf("the evidence says %v and %+v, with the faults %v", standing, disputes, report.Faults)
	}
}

// dispute is the id of the only dispute of a session.
func (w *world) dispute(s *client.Session) string {
	w.Helper()
	view, err := s.View(w.Ctx)
	testkit.Must(w, err)
	if len(view.Disputes) != 1 {
		w.Fatalf("there are %d disputes", len(view.Disputes))
	}
	return view.Disputes[0].ID
}

// TestFeed makes the feed of a calendar, signed in the browser, and removes it.
func TestFeed(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	b := w.enters(alice, "")
	b.opens("settings")
	b.clicks("#feed")
	b.holds(`document.querySelector("#feed-url").value.endsWith(".ics")`)
	b.accessible("settings with a feed")
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, 900))
		b.fits()
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	address := get[string](b, `document.querySelector("#feed-url").value`)
	answers := func() int {
		t.Helper()
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, address, nil)
		testkit.Must(t, err)
		got, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		testkit.Must(t, got.Body.Close())
		return got.StatusCode
	}
	if status := answers(); status != http.StatusOK {
		t.Errorf("the feed is answered %d", status)
	}
	b.opens("settings")
	b.clicks("[data-unfeed]")
	b.holds(`!document.querySelector("[data-unfeed]")`)
	if status := answers(); status != http.StatusNotFound {
		t.Errorf("the feed that was removed is answered %d", status)
	}
}
