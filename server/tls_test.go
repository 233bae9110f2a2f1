package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/test/testkit"
)

// An authority, and how a side uses it.
type authority struct{ *testkit.Authority }

func newAuthority(t *testing.T) authority { return authority{testkit.NewAuthority(t)} }

func (ca authority) issues(name string) (own server.TLS) {
	own.Cert, own.Key = ca.Issue(name)
	return own
}

// with returns the configuration that verifies the other side by this authority.
func (ca authority) with(own server.TLS) server.TLS {
	own.CA = ca.File
	return own
}

// reach connects to NATS, WebSocket and HTTP as a client with these certificates, and
// returns each one's error.
func (w world) reach(how server.TLS) map[string]error {
	w.Helper()
	key := w.registers(alpha)
	tried := map[string]error{"HTTP": w.get("https://"+w.HTTPAddr+"/healthz", how)}
	for name, url := range map[string]string{"NATS": w.URL, "WebSocket": w.WebsocketURL} {
		nc, err := nats.Connect(url, append(how.Client(url), testkit.Login(w, key), nats.NoReconnect(), nats.Timeout(testkit.Patience),
			nats.CustomInboxPrefix("_INBOX."+alpha.Token()))...)
		tried[name] = err
		if err == nil {
			w.asks(nc, alpha)
			nc.Close()
		}
	}
	return tried
}

func (w world) get(url string, how server.TLS) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if how.CA != "" {
		text, err := os.ReadFile(how.CA)
		testkit.Must(w, err)
		config.RootCAs.AppendCertsFromPEM(text)
	}
	if how.Cert != "" {
		own, err := tls.LoadX509KeyPair(how.Cert, how.Key)
		testkit.Must(w, err)
		config.Certificates = []tls.Certificate{own}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, url, http.NoBody)
	testkit.Must(w, err)
	reply, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return errors.New(reply.Status)
	}
	return nil
}

// A client that trusts the authority connects; plain text is refused. Mutual TLS
// also requires a client certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, foreign := newAuthority(t), newAuthority(t)
	ours, own := ca.issues("server"), ca.issues("client")
	for name, c := range map[string]struct {
		listener, client server.TLS
		reached          bool
	}{
		"trusted":                       {ours, ca.with(server.TLS{}), true},
		"authority unknown":             {ours, foreign.with(server.TLS{}), false},
		"mutual":                        {ca.with(ours), ca.with(own), true},
		"mutual, no certificate":        {ca.with(ours), ca.with(server.TLS{}), false},
		"mutual, a foreign certificate": {ca.with(ours), ca.with(foreign.issues("client")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", HTTP: "127.0.0.1:0", Websocket: "127.0.0.1:0", TLS: c.listener}
			w := start(t, o, ca.with(own))
			for what, err := range w.reach(c.client) {
				if (err == nil) != c.reached {
					t.Errorf("%s: %v; reached should be %t", what, err, c.reached)
				}
			}
			if err := w.get("http://"+w.HTTPAddr+"/healthz", server.TLS{}); err == nil {
				t.Error("HTTP in the clear is answered")
			}
			o.Listen = w.URL[strings.LastIndex(w.URL, "/")+1:]
			wants(t, o, "login", "ok the broker is let in")
			o.TLS = ca.issues("server")
			wants(t, o, "nats", "it has another certificate than --tls-cert")
		})
	}
}

// A broker and an external NATS server verify each other's certificates.
func TestTLSExternal(t *testing.T) {
	t.Parallel()
	ca, data := newAuthority(t), t.TempDir()
	ours, own := ca.issues("server"), ca.issues("broker")
	config, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	address := testkit.StartServerProcess(t, config+fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", ours.Cert, ours.Key, ca.File)).Address
	for _, url := range []string{"tls://" + address, "nats://" + address} {
		t.Run(url, func(t *testing.T) {
			w := start(t, server.Options{Data: data, NATS: url, TLS: ca.with(own)}, ca.with(own))
			_, err := w.OperatorClient().Broker(w.Ctx)
			testkit.Must(t, err)
		})
	}
	t.Run("another authority for clients", func(t *testing.T) {
		foreign := newAuthority(t)
		how := foreign.issues("HTTP")
		how.NATSCA = ca.File
		plain := testkit.StartServerProcess(t, config+fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", ours.Cert, ours.Key)).Address
		w := start(t, server.Options{Data: data, NATS: "tls://" + plain, HTTP: "127.0.0.1:0", TLS: how}, ca.with(server.TLS{}))
		testkit.Must(t, w.get("https://"+w.HTTPAddr+"/healthz", foreign.with(server.TLS{}))) // without a certificate of its own
	})
	if _, err := server.Start(t.Context(), server.Options{Data: data, NATS: "tls://" + address, TLS: newAuthority(t).with(own)}); err == nil {
		t.Error("a server with another authority's certificate is trusted")
	}
}

func TestTLSFiles(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	whole := ca.issues("server")
	for name, how := range map[string]server.TLS{
		"no key": {Cert: whole.Cert}, "no certificate": {Key: whole.Key}, "only an authority": {CA: ca.File},
		"no such file": {Cert: "nofile", Key: "nofile"}, "another's key": {Cert: whole.Cert, Key: ca.issues("client").Key},
		"authority of nothing": {Cert: whole.Cert, Key: whole.Key, CA: whole.Key},
	} {
		if n, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", TLS: how}); err == nil {
			t.Errorf("%s: it started", name)
			testkit.Must(t, n.Close(t.Context()))
		}
	}
}

// WebSocket is off by default, and requires the same logins.
func TestWebsocket(t *testing.T) {
	t.Parallel()
	w := start(t, server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"})
	if w.WebsocketURL != "" {
		t.Errorf("it is on by default, at %s", w.WebsocketURL)
	}
	w = start(t, server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", Websocket: "127.0.0.1:-1"})
	key := w.registers(alpha)
	connect := func(how nats.Option) error {
		nc, err := nats.Connect(w.WebsocketURL, how, nats.CustomInboxPrefix("_INBOX."+alpha.Token()))
		if err == nil {
			defer nc.Close()
			w.asks(nc, alpha)
		}
		return err
	}
	testkit.Must(t, connect(testkit.Login(t, key)))
	for name, how := range map[string]nats.Option{
		"unregistered": testkit.Bare(t, testkit.NewKey(t)), "another's sign": nats.Nkey(testkit.Public(t, key), testkit.NewKey(t).Sign), "nothing": nats.Name("nobody"),
	} {
		// The server sends the reason and closes; a client that is still writing may miss it.
		if err := connect(how); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
}

// Without logins, a page of another origin could act as anyone through a visitor's
// browser.
func TestWebsocketOfDev(t *testing.T) {
	t.Parallel()
	if _, err := server.Start(t.Context(), server.Options{
		Data: t.TempDir(), Listen: "127.0.0.1:-1", Dev: true, Websocket: "0.0.0.0:0",
	}); !errors.Is(err, server.ErrNotLoopback) && !errors.Is(err, embedded.ErrNotLoopback) {
		t.Errorf("on every address: %v", err)
	}
	w := start(t, server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", Dev: true, Websocket: "127.0.0.1:0"})
	nc, err := nats.Connect(w.WebsocketURL)
	testkit.Must(t, err)
	nc.Close()
	address := strings.TrimPrefix(w.WebsocketURL, "ws://")
	_, port, err := net.SplitHostPort(address)
	testkit.Must(t, err)
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{address, "http://evil.example", http.StatusForbidden},
		{address, "http://evil.example:" + port, http.StatusForbidden},
		{"evil.example:" + port, "http://evil.example:" + port, http.StatusForbidden}, // a name that points here
		{"evil.example:" + port, "http://" + address, http.StatusForbidden},
		{address, "null", http.StatusForbidden},
		{address, "http://" + address, http.StatusSwitchingProtocols},
		{"localhost:" + port, "http://localhost:" + port, http.StatusSwitchingProtocols},
	} {
		request, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+address, http.NoBody)
		testkit.Must(t, err)
		for header, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": c.origin,
		} {
			request.Header.Set(header, value)
		}
		request.Host = c.host
		reply, err := http.DefaultClient.Do(request)
		testkit.Must(t, err)
		testkit.Must(t, reply.Body.Close())
		if reply.StatusCode != c.status {
			t.Errorf("a page of %s that connects to %s is answered %s", c.origin, c.host, reply.Status)
		}
	}
}
