//go:build browser

package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
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
	b.reads("#evidence .chip", "the file is the same")
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
	b.accessible("the queue with what is due")
}

// TestDispute has a human dispute a delivery with a file as evidence, and a human arbiter decide it.
func TestDispute(t *testing.T) {
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
	w.said(s.Commit(w.Ctx, client.Commitment{ID: "k1", Obligations: []performatives.Obligation{{ID: "0", Party: sales, Action: "Deliver cups", VerificationMethod: "by eye"}}}))
	w.said(buyer.Accept(w.Ctx, "k1"))
	w.said(s.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "0"}))
	photo := filepath.Join(t.TempDir(), "cracked.jpg")
	testkit.Must(t, os.WriteFile(photo, []byte("a photo"), 0o600))

	b.opens("sessions/" + string(s.ID()) + "/obligation?commitment=k1&obligation=0")
	b.reads(".live", "live")
	b.presses("o")
	b.sees("#dispute[open]")
	b.accessible("disputing")
	b.types("#dispute-claim", "Ten boxes are cracked")
	b.do(chromedp.SetUploadFiles(css("#dispute-files"), []string{photo}))
	b.do(chromedp.Focus(css("#dispute-claim")))
	b.signs()
	b.reads(".title .chip", "Disputed")
	b.clicks("#disputed ~ .notes a")
	b.reads("#evidence", "cracked.jpg")
	b.do(chromedp.SetUploadFiles(css("#file"), []string{photo}))
	b.reads("#compared", "cracked.jpg is the same as the evidence")
	w.said(s.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: w.dispute(buyer), Position: performatives.OfferOf, Remedy: "half the price"}))
	b.reads(".conversation", "half the price") // by itself
	b.sees("[data-form=take-offer]")

	j := w.enters(judy, "")
	j.opens("disputes")
	j.accessible("disputes")
	j.clicks(".list .what a")
	j.reads("#dispute-title", "Ten boxes are cracked")
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
	j.signs()
	j.reads(".title .chip", "Split")
	j.reads(".conversation", "They were packed badly")
	b.reads(".title .chip", "Split") // by itself
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
