package mcpgateway

import (
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-asp/parley/gateway"
)

// crossSite reports whether a request may come from a page of another site, whose name was
// made to lead here (DNS rebinding): its Host is no name of the installation. A program on
// another machine may use a name that nobody configured; a page, which has an Origin, may not.
func (h *handler) crossSite(r *http.Request) bool {
	host := (&url.URL{Host: r.Host}).Hostname()
	ip, local := net.ParseIP(host), localIP(r)
	switch {
	case host == "localhost" || ip != nil && (ip.IsLoopback() || ip.Equal(local)):
		return false
	case h.named(host):
		return false
	case local.IsLoopback():
		return true
	case ip != nil:
		return false // a page whose site is an address was loaded from there
	}
	return h.o.URL != "" || h.o.Resource != "" || r.Header.Get("Origin") != ""
}

// localIP is the address of this machine at which a request arrived, nil if unknown.
func localIP(r *http.Request) net.IP {
	if at, is := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); is {
		return at.IP
	}
	return nil
}

// named reports whether the operator configured this name.
func (h *handler) named(host string) bool {
	return slices.ContainsFunc(append([]string{h.o.URL, h.o.Resource}, h.o.Origins...), func(own string) bool {
		at, err := url.Parse(own)
		return err == nil && at.Hostname() != "" && at.Hostname() == host
	})
}

// crossOrigin refuses pages of other sites, but for those of listed origins.
func (h *handler) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if at, err := url.Parse(origin); err == nil && at.Host == r.Host {
		return false
	}
	if !slices.Contains(h.o.Origins, origin) {
		http.Error(w, "pages of this origin may not call (--http-origins lists those that may)", http.StatusForbidden)
		return true
	}
	return gateway.AllowOrigin(w, r, "WWW-Authenticate, Mcp-Session-Id, Retry-After", "POST, GET, DELETE",
		"Authorization, Content-Type, Accept, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID, Traceparent")
}
