//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/internal/testkit"
)

// TestOwnKeys has a human revoke the key of another browser, then of their own.
func TestOwnKeys(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	phone := w.enters(alice, "")
	laptop := w.enters(alice, "")
	laptop.opens("settings")
	laptop.reads(".devices li", "this browser")
	laptop.holds(`document.querySelectorAll(".devices li").length === 2`)
	laptop.accessible("/settings")
	laptop.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	laptop.fits()
	laptop.accessible("/settings on a phone")
	laptop.do(chromedp.EmulateViewport(1440, 900))
	laptop.clicks("[data-revoke=revoke-1]")
	laptop.sees("#revoke-1[open]")
	laptop.accessible("the question before a key is revoked")
	laptop.clicks("#revoke-1 button[type=submit]")
	laptop.holds(`document.querySelectorAll(".devices li").length === 1`)
	phone.opens("")
	phone.reads("#refused", "not enrolled")

	laptop.clicks("[data-revoke=revoke-1]")
	laptop.reads("#revoke-1", "you will be signed out")
	laptop.clicks("#revoke-1 button[type=submit]")
	laptop.sees("#code")
	laptop.holds(`document.querySelector("#refused").textContent === ""`) // it has forgotten the key
}
