//go:build browser

package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/test/testkit"
)

// authenticator gives the page a platform authenticator, and returns how its human
// answers from then on.
func (b *browser) authenticator() (verifies func(bool)) {
	b.Helper()
	var id webauthn.AuthenticatorID
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Ctap2version: "ctap2_1", Transport: "internal", HasResidentKey: true, HasUserVerification: true, IsUserVerified: true,
			HasPrf: true, AutomaticPresenceSimulation: true,
		}})
		id = made.AuthenticatorID
		return err
	}))
	return func(yes bool) {
		b.Helper()
		b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: id, IsUserVerified: yes})
			return err
		}))
	}
}

// TestGuardedKey enrols a key that the device's authenticator guards: the browser keeps
// it encrypted, and neither signs in nor decides without the human.
func TestGuardedKey(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	second, _, other := w.asks("Another plan", "high", plan)
	b := w.browser()
	b.root = strings.Replace(b.root, "127.0.0.1", "localhost", 1) // an IP address has no passkeys
	verifies := b.authenticator()
	b.opens("login?next=items/" + id)
	b.do(chromedp.SendKeys(css("#code"), w.code(alice)))
	b.clicks("[name=guarded]")
	b.accessible("the sign-in with a guard")
	b.clicks("form button.primary")
	b.sees("#item")
	kept := get[string](b, `new Promise((resolve) => {
  indexedDB.open("parley-inbox").onsuccess = ({ target }) => {
    target.result.transaction("keys").objectStore("keys").get("current").onsuccess = ({ target }) => resolve(Object.keys(target.result).sort().join());
  };
})`)
	if kept != "agentId,guard,public" {
		t.Errorf("the browser keeps %s", kept)
	}

	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	b.clicks("[data-do=leave]")
	b.reads("#again", "This browser has a key for")
	b.opens("items/" + other)
	b.reads("#again", "You are not signed in") // by itself it asks nobody
	b.clicks("[data-do=again]")
	b.sees("#item")

	verifies(false) // for good: the authenticator locks itself
	b.clicks("[data-open=deny]")
	b.clicks("#deny button[type=submit]")
	b.reads("#deny .refused", "The key was not unlocked")
	if n := len(w.rulings(second)); n != 0 {
		t.Errorf("%d rulings without the human", n)
	}
	b.presses("\x1b")
	b.clicks("[data-do=leave]")
	b.clicks("[data-do=again]")
	b.reads("#refused", "not")
	b.holds(`!document.querySelector(".queue")`)
}
