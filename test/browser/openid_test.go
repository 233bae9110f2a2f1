//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/inbox/openid"
	provider "github.com/parley-asp/parley/test/openid"
	"github.com/parley-asp/parley/test/testkit"
)

// TestOpenID: a human signs in at a provider of another site, where that is required, and reads an item; enrols the
// browser with a code, signs in there again, and signs a decision.
func TestOpenID(t *testing.T) {
	front, behind := provider.Front(t)
	at := provider.Start(t, front+"/inbox/callback")
	at.Account("u1", "alice@acme.example", true)
	config, err := openid.Load(at.Config("required: true\nhumans: {'" + string(alice) + "': alice@acme.example}\n"))
	testkit.Must(t, err)
	w := newWorld(t, testkit.Options{HTTPURL: front, SignIn: config})
	behind(w.HTTPAddr)
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.browser()
	b.root = front + "/inbox/"

	b.opens("items/" + id)
	b.accessible("the sign-in")
	b.clicks("#openid")
	b.clicks("#allow")
	b.reads("#item-title", "Enterprise plan")
	b.reads(".notices", "You can read here, and not decide")
	if there := get[string](b, `location.href`); there != b.root+"items/"+id {
		t.Errorf("the page is at %s", there)
	}
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "This browser has no key that signs for you")
	b.presses("\x1b")

	b.clicks(".notices a[href='login?out']")
	b.sees("#code")
	b.do(chromedp.SendKeys(css("#code"), w.code(alice)), chromedp.SendKeys(css("#name"), "test"))
	b.clicks("form[data-do=enrol] button.primary")
	b.clicks("#allow")
	b.sees("#queue")
	b.opens("items/" + id)
	b.reads("#item-title", "Enterprise plan")
	if b.has(".notices a[href='login?out']") {
		t.Error("with a key, the page says that the browser has none")
	}
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	if n := len(w.rulings(buyer)); n != 1 {
		t.Errorf("the transcript has %d rulings", n)
	}

	b.clicks("[data-do=leave]")
	b.sees("#openid")
	b.opens("items/" + id)
	b.sees("#openid") // the key alone does not sign in
}
