package inbox

import (
	"mime"
	"net/http"
)

// policy allows resources of the inbox only: no inline script or style, no framing,
// no form posts to other origins, and markup from strings only in static/page.js.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// requestHeader is required on every POST. A form cannot set it, and a page of another
// origin may not. It names the human whose page it is, or is anyPage.
const (
	requestHeader = "Parley-Inbox"
	anyPage       = "1"
)

// maxPost exceeds the largest envelope (PROTOCOL.md §3).
const maxPost = 512 << 10

var crossOrigin = http.NewCrossOriginProtection()

// guarded sets the security headers, and refuses requests that our pages do not send.
func (i *Inbox) guarded(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if i.Dev && !loopback(r.Host) { // prevents DNS rebinding, which --dev has no login against
		http.Error(w, "--dev serves localhost only", http.StatusForbidden)
		return false
	}
	if r.Method != http.MethodPost {
		return true
	}
	if err := crossOrigin.Check(r); err != nil {
		http.Error(w, "cross-origin request", http.StatusForbidden)
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || r.Header.Get(requestHeader) == "" {
		http.Error(w, "want application/json and the header "+requestHeader, http.StatusForbidden)
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPost)
	return true
}
