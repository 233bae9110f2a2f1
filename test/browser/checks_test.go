//go:build browser

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const carol = performatives.Agent("human://acme.example/carol") // who may not decide

func (w *world) registersCarol() {
	w.Helper()
	w.registers(carol, func(c *api.Card) { c.Registry.MayDecide = false })
}

// delegates has the buyer's agent ask a human to check the seller's offer.
func (w *world) delegates(to performatives.Agent, authority string) (buyer, seller *client.Session) {
	w.Helper()
	buyer, seller = w.opens("Offer customer analytics")
	terms := map[string]any{"region": "eu-central-1", "retentionDays": 90, "trial": true}
	w.said(buyer.Propose(w.Ctx, client.Proposal{ID: "prop_040", Type: "service-agreement", Subject: "Customer analytics", Terms: map[string]any{"region": "eu-central-1", "retentionDays": 30, "trial": true}}))
	w.said(seller.Counter(w.Ctx, "prop_040", client.Proposal{ID: "prop_041", Terms: terms}))
	w.said(buyer.Delegate(w.Ctx, to, client.Delegation{
		Scope: "Verify that proposed data handling terms comply with GDPR Article 28", Authority: authority,
		For: "prop_041", ValidUntil: time.Now().Add(time.Hour),
	}))
	return buyer, seller
}

// spoken are the acts of somebody in a transcript.
func (w *world) spoken(s *client.Session, by performatives.Agent) (all []performatives.Body) {
	w.Helper()
	entries, err := w.as(alpha).Transcript(w.Ctx, s.ID())
	testkit.Must(w, err)
	for _, e := range entries {
		testkit.Must(w, e.Message.DecodeBody())
		if e.Message.Sender == by {
			all = append(all, e.Message.Body)
		}
	}
	return all
}

// TestCheck is the seed's delegation pattern with a human as the specialist: asked
// to check GDPR compliance with advisory authority, she joins, reports, and sees
// what became of it.
func TestCheck(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	b := w.enters(carol, "")
	b.opens("checks")
	b.reads(".empty", "Nothing to check")
	b.reads(".live", "live")
	buyer, seller := w.delegates(carol, client.Advisory)
	b.reads(".list", "GDPR Article 28") // by itself
	b.reads(".list", "new")
	b.presses("j")
	b.presses("\r")
	b.reads("#check-title", "GDPR Article 28")
	b.reads(".facts", "advisory authority")
	b.reads(".why", "once you have joined")
	if b.has(".conversation") || b.has("#terms") {
		t.Error("the transcript is shown before she joined")
	}
	b.reads(".live", "live")
	b.presses("i")
	b.sees("#join[open]")
	b.signs()
	b.reads(".offer", "Customer analytics")
	b.reads("tr.changed", "90")
	b.reads(".conversation", "COUNTER")
	if b.has("[data-form=accept], [data-form=ask]") {
		t.Error("the page offers more than advisory authority allows")
	}
	b.presses("r")
	b.sees("#answer[open]")
	b.do(chromedp.SetValue(css("#answer-assessment"), "compliant"))
	b.types("#answer-details", "Data handling terms satisfy GDPR Article 28")
	b.types("#answer-conditions", "Have the processing audited once a year\nDelete on request\n")
	w.said(seller.Inform(w.Ctx, performatives.Fact, "while she writes"))
	b.signs()
	b.reads("#answer-now ~ .said", "compliant")
	b.reads(".conversation", "while she writes")
	spoken := w.spoken(buyer, carol)
	inform, ok := spoken[len(spoken)-1].(*performatives.InformBody)
	if !ok || inform.Kind() != performatives.Result {
		t.Fatalf("she said %+v", spoken)
	}
	var found client.Finding
	testkit.Must(t, json.Unmarshal(inform.Data, &found))
	if found.Assessment != "compliant" || len(found.Conditions) != 2 || found.Conditions[1] != "Delete on request" || found.Offer != "prop_041" {
		t.Errorf("she reported %+v", found)
	}
	w.said(buyer.Accept(w.Ctx, "prop_041"))
	w.said(buyer.Close(w.Ctx, client.Closing{Outcome: performatives.Completed}))
	b.reads(".notice", "The session is over. Completed")
	b.reads(".offer", "accepted")
	b.presses("u")
	b.reads(".empty", "Nothing to check")
	b.clicks(`.tabs a[href*="over"]`)
	b.reads(".list", "over")
}

// TestCheckWithFullAuthority asks, counters, hands over, rejects and leaves.
func TestCheckWithFullAuthority(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	buyer, seller := w.delegates(carol, client.Full)
	b := w.enters(carol, "")
	path := "checks/" + string(buyer.ID())
	b.opens(path)
	b.clicks("[data-form=join]")
	b.clicks("#join button[type=submit]")
	b.clicks("[data-form=ask]")
	b.do(chromedp.SetValue(css("#ask-field"), "terms.retentionDays"))
	b.types("#ask-question", "Why 90 days?")
	b.clicks("#ask button[type=submit]")
	b.reads(".conversation", "Why 90 days?")
	b.clicks("[data-form=accept]")
	b.clicks("#accept button[type=submit]")
	b.reads("#accept .refused", "retentionDays") // still asked about
	b.presses("\x1b")
	b.clicks("[data-form=counter]")
	b.types(`#counter [data-path='"terms.retentionDays"']`, "30.5")
	b.do(chromedp.SetValue(css(`#counter [data-path='"terms.trial"']`), "false"))
	b.clicks("#counter button[type=submit]")
	b.reads(".offer", "by carol")
	view, err := w.as(alpha).View(w.Ctx, buyer.ID())
	testkit.Must(t, err)
	offer := view.Proposals[len(view.Proposals)-1]
	if terms := string(offer.Terms); offer.From != alpha || terms != `{"region":"eu-central-1","retentionDays":30.5,"trial":false}` {
		t.Errorf("the counter-offer of %s is %s", offer.From, terms)
	}
	w.said(seller.Counter(w.Ctx, offer.Proposal, client.Proposal{ID: "prop_043", Terms: map[string]any{"region": "us-east-1"}}))
	b.reads(".offer", "prop_043")
	b.clicks("[data-form=reject]")
	b.types("#reject-reason", "The data leaves the Union")
	b.clicks("#reject button[type=submit]")
	b.reads(".offer", "rejected")
	b.clicks("[data-form=pass]")
	b.do(chromedp.SetValue(css("#pass-to"), string(bob)), chromedp.SetValue(css("#pass-authority"), "limited"))
	b.clicks("#pass button[type=submit]")
	second := w.enters(bob, "")
	second.opens("checks")
	second.reads(".list", "limited")
	second.reads(".list", "carol")
	b.clicks("[data-form=leave]")
	b.clicks("#leave button[type=submit]")
	b.reads(".notice", "This delegation is withdrawn")
	second.opens("checks")
	second.reads(".empty", "Nothing to check") // hers was what his came from
}

// TestCheckDeclined takes no part, by a finger on a phone.
func TestCheckDeclined(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	buyer, _ := w.delegates(carol, client.Limited)
	b := w.enters(carol, "")
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2)))
	b.opens("checks")
	b.sees("[data-check]")
	b.fits()
	b.readable()
	b.do(chromedp.Tap(css("[data-check]")))
	b.sees("#check")
	b.fits()
	b.readable()
	b.do(chromedp.Tap(css("[data-form=decline]")), chromedp.WaitVisible(css("#decline[open]")))
	b.fits()
	b.types("#decline-reason", "Not my field")
	b.do(chromedp.ScrollIntoView(css("#decline button[type=submit]")), chromedp.Tap(css("#decline button[type=submit]")))
	b.reads(".empty", "Nothing to check")
	if spoken := w.spoken(buyer, carol); len(spoken) != 1 || spoken[0].Act() != performatives.Reject {
		t.Errorf("she said %+v", spoken)
	}
}

// TestHostileCheck shows what the agent of another organisation asks for as text.
func TestHostileCheck(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registersCarol()
	evil := `<img src=x onerror="window.pwned=1"></bdi></article><h1>Approved</h1>` + " \u202e" + strings.Repeat("W", 3000)
	_, seller := w.opens(evil)
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "p<1>", Type: "service-agreement", Subject: evil, Terms: map[string]any{evil: evil, "n": 1}}))
	w.said(seller.Delegate(w.Ctx, carol, client.Delegation{Scope: evil, Authority: client.Full}))
	b := w.enters(carol, "")
	b.opens("checks")
	b.reads(".list", "<img src=x")
	b.reads(".list", "other organisation")
	b.fits()
	b.clicks("[data-check]")
	b.reads("#check-title", "<img src=x")
	b.reads(".facts", "their words")
	b.clicks("[data-form=join]")
	b.clicks("#join button[type=submit]")
	b.reads(".said", `\u202e`)
	for _, form := range []string{"answer", "ask", "counter"} {
		b.clicks("[data-form=" + form + "]")
		b.sees("#" + form + "[open]")
		b.fits()
		b.presses("\x1b")
	}
	b.fits()
	if get[bool](b, `"pwned" in window || !!document.querySelector("main img, main h1 ~ h1")`) {
		t.Error("the scope became markup")
	}
}
