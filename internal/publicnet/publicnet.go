// Package publicnet makes HTTP clients for URLs that clients name: they reach public
// addresses only, and follow no redirects.
//
//	client := publicnet.Client(10*time.Second, false)
//	data, err := publicnet.Get(ctx, client, url, "application/json", 64<<10)
//	if errors.Is(err, publicnet.ErrPrivate) { … } // the host is at a private address
//
// The address is checked when the connection is made, after the name was resolved, so a name
// that resolves otherwise the second time gains nothing.
package publicnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrPrivate means that an address is not one of the public internet.
var ErrPrivate = errors.New("the address is private")

// ErrAnswer means that a server was reached, and answered something else than was asked for.
var ErrAnswer = errors.New("the answer is refused")

// reserved are networks that are not public and that netip does not tell apart.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is one of the public internet.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, network := range reserved {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// Client makes a client that gives up on a request after a time. With private it reaches
// private addresses, too.
func Client(timeout time.Duration, private bool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || !private && !Public(to.Addr()) {
			return ErrPrivate
		}
		return nil
	}}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
			MaxIdleConns: 100, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// Get reads a document, which is answered 200 and has at most a number of bytes.
func Get(ctx context.Context, client *http.Client, url, accept string, most int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s is answered %d, not 200", ErrAnswer, url, answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if err == nil && len(data) > most {
		return nil, fmt.Errorf("%w: %s has more than %d KiB", ErrAnswer, url, most>>10)
	}
	return data, err
}

// maxURL is how long a URL is at most.
const maxURL = 2048

// Check refuses a URL that a client of this package would not reach, as far as can be told
// without resolving its host.
func Check(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("want an http(s) URL of at most %d bytes, without user and fragment", maxURL)
	case !validPort(u.Port()):
		return errors.New("a port is a number from 1 to 65535")
	case private:
		return nil
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.Contains("."+host+".", "..") {
		return errors.New("a host has no empty labels")
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return ErrPrivate
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !Public(ip) {
			return ErrPrivate
		}
		return nil
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; isNumber(last) {
		return errors.New("an IPv4 address has four decimal numbers")
	}
	return nil
}

// validPort reports whether a URL's port can be dialled; "" is that of the scheme.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// isNumber reports whether the last label of a host makes it an IPv4 address, which resolvers
// also take with fewer numbers, and with octal and hexadecimal ones.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return label != "" && strings.Trim(digits, "0123456789") == "" || hex && strings.Trim(digits, "0123456789abcdef") == ""
}
