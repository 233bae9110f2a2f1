package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-asp/parley/internal/publicnet"
)

// GATEWAYS.md G4: DID documents are fetched over HTTPS from hosts that are listed, never from
// private addresses, and no redirect is followed.
func TestFetchDID(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/did.json":
			w.Write([]byte("{}")) //nolint:errcheck // the test sees it
		case "/large/did.json":
			w.Write(make([]byte, maxDocument+1)) //nolint:errcheck // the test sees it
		default:
			http.Redirect(w, r, "/.well-known/did.json", http.StatusFound)
		}
	}))
	defer tlsServer.Close()
	hosts := []string{"example.com"}
	client := publicnet.Client(didWithin, true)
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("the client has another transport")
	}
	trusted, ok := tlsServer.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the server's client has another transport")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: trusted.TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12} // whose certificate is of example.com
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, tlsServer.Listener.Addr().String())
	}
	if data, err := fetchDID(t.Context(), client, hosts, "https://example.com/.well-known/did.json"); err != nil || string(data) != "{}" {
		t.Errorf("the document is %q, %v", data, err)
	}
	for url, want := range map[string]string{
		"https://other.com/.well-known/did.json":  "--did-hosts",
		"http://example.com/.well-known/did.json": "--did-hosts",
		"https://example.com:444/did.json":        "--did-hosts",
		"https://example.com/large/did.json":      "more than",
		"https://example.com/elsewhere/did.json":  "answered 302",
	} {
		if _, err := fetchDID(t.Context(), client, hosts, url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	private := strings.Replace(tlsServer.URL, "https://", "", 1)
	if _, err := didDocuments([]string{private})(t.Context(), tlsServer.URL+"/.well-known/did.json"); !errors.Is(err, publicnet.ErrPrivate) {
		t.Errorf("a private address is reached: %v", err)
	}
}
