package publicnet_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/internal/publicnet"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "10.1.2.3": false, "192.168.0.1": false, "172.16.0.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "::1": false, "::ffff:127.0.0.1": false, "fe80::1": false, "fc00::1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "224.0.0.1": false,
		"255.255.255.255": false, "::": false, "fec0::1": false,
	} {
		if got := publicnet.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}

// A server at a loopback address is reached by who may reach it only, also by a name, and a
// redirect is followed by nobody.
func TestClient(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer inner.Close()
	server := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	for _, url := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
		if err := publicnet.Check(url, false); !errors.Is(err, publicnet.ErrPrivate) {
			t.Errorf("Check(%s): %v", url, err)
		}
		answer, err := publicnet.Client(time.Minute, false).Post(url, "text/plain", http.NoBody)
		if !errors.Is(err, publicnet.ErrPrivate) {
			t.Errorf("%s is reached: %v", url, err)
		}
		if err == nil {
			answer.Body.Close()
		}
	}
	answer, err := publicnet.Client(time.Minute, true).Post(server.URL, "text/plain", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("answered %s", answer.Status)
	}
	for _, url := range []string{"", "ftp://a.io/", "http://", "https://user@a.io/", "https://a.io/#x", "https://a.io/" + strings.Repeat("x", 3000)} {
		if publicnet.Check(url, true) == nil {
			t.Errorf("%.40q is taken", url)
		}
	}
	if err := publicnet.Check("https://hooks.acme.com/x?y=1", false); err != nil {
		t.Error(err)
	}
}

// What can be told to be no URL of a public host is refused without resolving it.
func TestCheck(t *testing.T) {
	t.Parallel()
	for host, private := range map[string]bool{ // else it is no host at all
		"localhost": true, "localhost.": true, "LocalHost": true, "a.localhost.": true, "127.0.0.1.": true, "10.0.0.1": true, "192.168.1.1:8080": true,
		"169.254.169.254": true, "[::1]": true, "[::ffff:127.0.0.1]": true, "[fe80::1%25eth0]": true, "[fd00::1]": true,
		"127.1": false, "127.0.1": false, "127.1.": false, "2130706433": false, "0x7f000001": false, "0x7F.1": false, "0x7f.0.0.0x1": false, "017700000001": false,
		"0177.0.0.1": false, "1.2.3.4.5": false, "0x": false, ".": false, "localhost..": false, "a..io": false, "a.io:99999": false, "a.io:0": false, "a.io:65536": false, "8.8.8.8:99999": false,
	} {
		if err := publicnet.Check("https://"+host+"/x", false); err == nil || errors.Is(err, publicnet.ErrPrivate) != private {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"a.io", "a.io.", "a.io:8443", "a.io:", "8.8.8.8", "8.8.8.8:65535", "[2606:4700::1111]:443", "1.a", "0xcafe.io", "localhost.acme.com", "x0a"} {
		if err := publicnet.Check("https://"+host+"/x", false); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if publicnet.Check("http://127.0.0.1:99999/", true) == nil || publicnet.Check("http://127.0.0.1:8080/", true) != nil {
		t.Error("private URLs are taken with a port that there is, and no other")
	}
}
