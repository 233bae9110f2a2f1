package inbox

import (
	"mime"
	"net"
	"net/http"
	"strings"
)

// policy lets a page load what comes from the inbox itself and nothing else: no
// inline script or style, no frame around it, no form that posts elsewhere, and
// markup made of strings only where static/page.js says so.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// Request is the header that every POST has to carry: no form can, and no page
// of another origin may.
const requestHeader = "Parley-Inbox"

// maxPost is above the largest envelope (PROTOCOL.md §3).
const maxPost = 512 << 10

var crossOrigin = http.NewCrossOriginProtection()

// guarded sets what every answer carries, and refuses requests that no page of
// ours sends.
func (i *Inbox) guarded(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if i.Dev && !loopback(r.Host) { // or a page elsewhere, by a name that it points here, would be anyone
		http.Error(w, "--dev answers on localhost only", http.StatusForbidden)
		return false
	}
	if r.Method != http.MethodPost {
		return true
	}
	if err := crossOrigin.Check(r); err != nil {
		http.Error(w, "this comes from a page of another origin", http.StatusForbidden)
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

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// secure tells whether the browser came over TLS, here or at the proxy in front.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// elsewhere sends a browser to a place relative to where it is, so that the
// prefix of a proxy in front, which is not known here, stays.
func elsewhere(w http.ResponseWriter, relative string) {
	w.Header().Set("Location", relative)
	w.WriteHeader(http.StatusSeeOther)
}
