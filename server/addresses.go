package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-asp/parley/api"
	httpgateway "github.com/parley-asp/parley/gateway/http"
)

// DefaultHTTPConnections is how many HTTP connections one address may have open.
const DefaultHTTPConnections = 256

// addresses counts the open HTTP connections of each address. A connection over the
// bound is answered with 429 and closed. At twice the bound it is closed at once.
type addresses struct {
	most    atomic.Int64   // below zero: no bound
	proxies []netip.Prefix // reverse proxies: not bounded, and believed about addresses

	mu   sync.Mutex
	open map[netip.Addr]int
}

func newAddresses(most int, proxies []netip.Prefix) *addresses {
	a := &addresses{proxies: proxies, open: map[netip.Addr]int{}}
	a.set(most)
	return a
}

// set has another bound for connections from now on.
func (a *addresses) set(most int) { a.most.Store(int64(cmp.Or(most, DefaultHTTPConnections))) }

func (a *addresses) isProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(a.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// enter counts a connection, unless its address has too many.
func (a *addresses) enter(addr netip.Addr) (over, ok bool) {
	if a.isProxy(addr) {
		return false, true
	}
	addr, most := oneOf(addr), int(a.most.Load())
	a.mu.Lock()
	defer a.mu.Unlock()
	if most >= 0 && a.open[addr] >= 2*most {
		return true, false
	}
	a.open[addr]++
	return most >= 0 && a.open[addr] > most, true
}

func (a *addresses) leave(addr netip.Addr) {
	if a.isProxy(addr) {
		return
	}
	addr = oneOf(addr)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[addr]--; a.open[addr] <= 0 {
		delete(a.open, addr)
	}
}

// oneOf is what counts as one address: an IPv6 host has a whole /64.
func oneOf(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if net64, err := addr.Prefix(64); err == nil {
			return net64.Addr()
		}
	}
	return addr
}

// from returns the address that a request comes from: that of the connection, or,
// behind a reverse proxy, the last one in X-Forwarded-For that is not a proxy's.
func (a *addresses) from(r *http.Request) string {
	addr := addrOf(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(forwarded) {
		if !a.isProxy(addr) {
			break
		}
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil { // some proxies write the port, too
			before = addrOf(strings.TrimSpace(hop))
		}
		if !before.IsValid() {
			break
		}
		addr = before.Unmap()
	}
	return oneOf(addr).String()
}

func addrOf(hostport string) netip.Addr {
	if at, err := netip.ParseAddrPort(hostport); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// listen counts the connections of a listener.
func (a *addresses) listen(l net.Listener) net.Listener { return countedListener{l, a, false} }

// listenStrictly closes a connection over the bound at once.
func (a *addresses) listenStrictly(l net.Listener) net.Listener { return countedListener{l, a, true} }

type countedListener struct {
	net.Listener
	addresses *addresses
	strict    bool
}

func (l countedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := addrOf(conn.RemoteAddr().String())
		over, ok := l.addresses.enter(addr)
		if ok && over && l.strict {
			l.addresses.leave(addr)
			ok = false
		}
		if ok {
			return &countedConn{Conn: conn, over: over, leave: sync.OnceFunc(func() { l.addresses.leave(addr) })}, nil
		}
		conn.Close() //nolint:errcheck // nothing was read or written
	}
}

type countedConn struct {
	net.Conn
	over  bool // its address has too many
	leave func()
}

func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

type overKey struct{}

// mark notes in the context of a connection's requests that it is over the bound.
func mark(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if c, ok := conn.(*countedConn); ok && c.over {
		return context.WithValue(ctx, overKey{}, true)
	}
	return ctx
}

// refuseOver answers 429 on connections that are over the bound.
func refuseOver(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(overKey{}) == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		refusal := api.RateLimited("connections", 5*time.Second, "there are too many connections from your address")
		httpgateway.Refuse(w, refusal)
	})
}
