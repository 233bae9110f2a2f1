package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

const (
	key   performatives.Key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
	other performatives.Key = "UCNSIEUDFYLXBPXTBHNMJVXCFRYTQBDOSHDFMUZR4KTGJYJ4EGLFQXRO"
)

// serves is a domain whose HTTPS server, of whatever name, is the test's.
func serves(t *testing.T, handler http.HandlerFunc) registry.Domain {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	client := publicnet.Client(0, true)
	transport := server.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // httptest's is one
	transport.TLSClientConfig.ServerName = "example.com"             // of its certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}
	client.Transport = transport
	return registry.Domain{Client: client}
}

func write(w http.ResponseWriter, text string) {
	_, _ = w.Write([]byte(text)) // the client may have read enough
}

// fails asserts that a domain does not prove the key, and says why.
func fails(t *testing.T, d registry.Domain, by, why string) {
	t.Helper()
	if err := d.Prove(t.Context(), "acme.com", key, by); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v, want %q", by, err, why)
	}
}

// GATEWAYS.md G5: the owner of a domain binds keys to it by a file, read under G4's rules.
func TestProofByFile(t *testing.T) {
	t.Parallel()
	d := serves(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "acme.com" || r.URL.Path != "/.well-known/asp/keys.json" {
			t.Errorf("asked %s %s", r.Host, r.URL)
		}
		write(w, fmt.Sprintf(`{"keys":[%q,%q]}`, other, key))
	})
	if err := d.Prove(t.Context(), "acme.com", key, api.ByFile); err != nil {
		t.Error(err)
	}
	for why, answer := range map[string]http.HandlerFunc{
		"does not have the key": func(w http.ResponseWriter, _ *http.Request) { write(w, fmt.Sprintf(`{"keys":[%q]}`, other)) },
		"is not {":              func(w http.ResponseWriter, _ *http.Request) { write(w, "<html>") },
		"more than 64 KiB": func(w http.ResponseWriter, _ *http.Request) {
			write(w, fmt.Sprintf(`{"keys":[%q]}%s`, key, strings.Repeat(" ", 64<<10)))
		},
		"answered 404": http.NotFound,
		"answered 302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://acme.com/elsewhere", http.StatusFound)
		},
	} {
		fails(t, serves(t, answer), api.ByFile, why)
	}
}

// The production client reaches no private address, by whatever name.
func TestProofAtPrivateAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address was asked") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port} {
		if err := registry.PublicDomain().Prove(t.Context(), host, key, api.ByFile); err == nil {
			t.Errorf("%s proved the key", host)
		}
	}
	if err := registry.PublicDomain().Prove(t.Context(), "127.0.0.1:"+port, key, api.ByFile); !strings.Contains(fmt.Sprint(err), "private") {
		t.Error(err)
	}
}

// … or by a DNS record.
func TestProofByRecord(t *testing.T) {
	t.Parallel()
	texts := map[string][]string{"_parley.acme.com": {"v=spf1 -all", "parley-key=" + string(other), " parley-key=" + string(key)}}
	d := registry.Domain{TXT: func(_ context.Context, name string) ([]string, error) {
		if texts[name] == nil {
			return nil, errors.New("no such host")
		}
		return texts[name], nil
	}}
	if err := d.Prove(t.Context(), "acme.com", key, api.ByDNS); err != nil {
		t.Error(err)
	}
	texts["_parley.acme.com"] = texts["_parley.acme.com"][:2]
	fails(t, d, api.ByDNS, "no TXT record parley-key="+string(key))
	delete(texts, "_parley.acme.com")
	fails(t, d, api.ByDNS, "cannot be read")
	fails(t, d, "hearsay", "dns or file")
}
