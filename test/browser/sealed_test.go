//go:build browser

package browser

import (
	"testing"

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
