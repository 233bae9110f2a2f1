package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		"https://example.com/large/did.json":      "more than 64 KiB",
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

// A transport answers requests in place of a server.
type transport func(*http.Request) (*http.Response, error)

func (answer transport) RoundTrip(r *http.Request) (*http.Response, error) { return answer(r) }

// unending is a body that ends with its request.
type unending struct{ context.Context }

func (u unending) Read([]byte) (int, error) { <-u.Done(); return 0, u.Err() }

// GATEWAYS.md G4: a host has five seconds for its DID document, to the last byte.
func TestSlowDID(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]transport{
		"silent": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"never ends": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(strings.NewReader("{"), unending{r.Context()}))}, nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := publicnet.Client(didWithin, false)
			client.Transport = answer
			started := time.Now()
			data, err := fetchDID(t.Context(), client, []string{"example.com"}, "https://example.com/.well-known/did.json")
			if took := time.Since(started); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
				t.Errorf("%s: %q, %v after %s", name, data, err, took)
			}
		})
	}
}
