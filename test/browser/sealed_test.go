//go:build browser

package browser

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// ruling is the newest decision as somebody reads it.
func (w *world) ruling(a performatives.Agent, s *client.Session) (last performatives.RulingData) {
	w.Helper()
	entries, err := w.as(a).Transcript(w.Ctx, s.ID())
	testkit.Must(w, err)
	for _, e := range entries {
		testkit.Must(w, e.Message.DecodeBody())
		if inform, is := e.Message.Body.(*performatives.InformBody); is {
			if ruling, is := inform.Ruling(); is {
				last = ruling
			}
		}
	}
	return last
}

// TestSealedRulings has a human decide on the pages: what it allows, and guidance, only its own side
// reads, unless it opens the one; and a comment that it seals.
func TestSealedRulings(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=guidance]")
	b.types("#guidance-comment", "their limit is 12")
	b.clicks("#guidance button[type=submit]")
	b.reads("#item > .notice", "guidance by alice")
	b.reads("#item", "their limit is 12")
	if ours, theirs := w.ruling(alpha, buyer), w.ruling(sales, buyer); ours.Comment != "their limit is 12" || theirs.Comment != "" || !theirs.Sealed.Has(performatives.SealComment) {
		t.Errorf("guidance is read as %+v and by the other side as %+v", ours, theirs)
	}
	for _, open := range []bool{false, true} {
		asked, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Context: "again", About: "prop_050"})
		testkit.Must(t, err)
		b.opens("items/" + asked.ID)
		b.clicks("[data-open=approve]")
		if open {
			b.clicks("#approve [name=openAuthority]")
		} else {
			b.clicks("#approve [name=sealComment]")
		}
		b.types("#approve-comment", "as shown")
		b.clicks("#approve button[type=submit]")
		b.reads("#item > .notice", "approved by alice")
		ours, theirs := w.ruling(alpha, buyer), w.ruling(sales, buyer)
		if ours.Authority == nil || ours.Authority.TermsHash == "" || ours.Comment != "as shown" {
			t.Errorf("its own side reads %+v", ours)
		}
		if (theirs.Authority != nil) != open || (theirs.Comment != "") != open {
			t.Errorf("opened %t: the other side reads %+v", open, theirs)
		}
	}
}

// TestOpenRulings: an installation may leave rulings open unless they are sealed.
func TestOpenRulings(t *testing.T) {
	w := newWorld(t, testkit.Options{OpenRulings: true})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.clicks("[data-open=approve]")
	b.sees("#approve [name=openAuthority]:checked")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	if theirs := w.ruling(sales, buyer); theirs.Authority == nil {
		t.Errorf("the other side reads %+v", theirs)
	}
}

// TestUnsealed has a human open to the arbiter, by keyboard and signed, what its agent has sealed, and not what
// it has sealed itself.
func TestUnsealed(t *testing.T) {
	const judge = performatives.Agent("agent://chamber.example/judge")
	w := newWorld(t, testkit.Options{})
	w.registers(judge)
	s, err := w.as(sales).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "Cups", Policy: map[string]any{"arbiter": judge}})
	testkit.Must(t, err)
	buyer := w.as(alpha).Session(s.ID())
	w.said(buyer.Accept(w.Ctx, "inv"))
	w.said(s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "Cups", Terms: plan}))
	asked, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Context: "our limit is 5", SuggestedAction: "approve", About: "p1"})
	testkit.Must(t, err)
	b := w.enters(alice, "items/"+asked.ID)
	b.clicks("[data-open=guidance]")
	b.types("#guidance-comment", "their limit is 12")
	b.clicks("#guidance button[type=submit]")
	b.reads("#item > .notice", "guidance by alice")
	b.reads("#sealed ~ .notes", "the suggested action")
	b.presses("o")
	b.sees("#unseal[open]")
	b.reads("#unseal .sentence", string(judge))
	b.accessible("opening sealed parts")
	b.signs()
	b.reads("#unseal .refused", "Choose what the arbiter is to read")
	b.do(chromedp.KeyEvent(" "))
	b.sees("#unseal [name=sealer]:checked")
	b.signs()
	b.reads("#sealed ~ .notes .chip", "the arbiter may read it")
	item, err := client.Do(w.Ctx, w.as(alice), api.EscalationGet, api.GetEscalation{Escalation: asked.ID})
	testkit.Must(t, err)
	if !slices.Equal(item.Unsealed, []performatives.Agent{alpha}) {
		t.Errorf("unsealed is what %s sealed", item.Unsealed)
	}
	b.presses("o")
	b.reads("#unseal label", "by alice")
}
