package adversary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A caller is an HTTP client at an address of this machine.
type caller struct {
	testing.TB
	root   string
	client *http.Client
}

func callsFrom(t testing.TB, address, root string) caller {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	return caller{t, root, &http.Client{Transport: transport, Timeout: testkit.Patience}}
}

// failsToSignIn signs in as a principal without its key.
func (c caller) failsToSignIn(as, forwardedFor string) int {
	c.Helper()
	body := fmt.Sprintf(`{"agentId":%q,"challenge":"x","key":"x","signature":"x"}`, as)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.root+"/inbox/login", strings.NewReader(body))
	testkit.Must(c, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Parley-Inbox": "1", "Sec-Fetch-Site": "same-origin", "X-Forwarded-For": forwardedFor,
	} {
		r.Header.Set(name, value)
	}
	answer, err := c.client.Do(r)
	testkit.Must(c, err)
	testkit.Must(c, answer.Body.Close())
	return answer.StatusCode
}

// TestFailedSignIns: who fails to sign in again and again is refused, and nobody
// else is: failures are counted by address and by principal.
func TestFailedSignIns(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0", HTTPProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	root := "http://" + b.HTTPAddr
	const most = 30
	attacker, other := callsFrom(t, "127.0.0.2", root), callsFrom(t, "127.0.0.3", root)
	for range most {
		if status := attacker.failsToSignIn(string(alice), "127.0.0.7"); status != http.StatusUnauthorized {
			t.Fatalf("a wrong signature is answered %d", status)
		}
	}
	// X-Forwarded-For is believed of proxies only.
	if status := attacker.failsToSignIn(string(bob), "127.0.0.8"); status != http.StatusTooManyRequests {
		t.Errorf("after %d failures the address is answered %d", most, status)
	}
	if status := other.failsToSignIn(string(bob), ""); status != http.StatusUnauthorized {
		t.Errorf("somebody at another address is answered %d", status)
	}
	if status := other.failsToSignIn(string(alice), ""); status != http.StatusTooManyRequests {
		t.Errorf("after %d failures as %s, another is answered %d", most, alice, status)
	}
	proxy := callsFrom(t, "127.0.0.9", root)
	for i := range most + 1 {
		want := http.StatusUnauthorized
		if i == most {
			want = http.StatusTooManyRequests
		}
		if status := proxy.failsToSignIn(fmt.Sprint("human://acme.com/h", i), "203.0.113.1, 203.0.113.7"); status != want {
			t.Fatalf("failure %d through the proxy is answered %d", i, status)
		}
	}
	if status := proxy.failsToSignIn(string(bob), "203.0.113.7, 203.0.113.8"); status != http.StatusUnauthorized {
		t.Errorf("another address behind the proxy is answered %d", status)
	}
}

// TestConnectionsOfAnAddress: an address that opens more connections than it may is
// told so, and then not listened to; others get in.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	const most = 4
	b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0", HTTPConnections: most})
	status := func(conn net.Conn) (int, error) {
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		if _, err := io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return 0, err
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err
		}
		if kind := answer.Header.Get("Content-Type"); answer.StatusCode == http.StatusTooManyRequests && kind != "application/problem+json" {
			t.Errorf("the refusal is %s", kind)
		}
		return answer.StatusCode, answer.Body.Close()
	}
	open := func(from string) net.Conn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", b.HTTPAddr)
		testkit.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var all []net.Conn
	for range 2 * most {
		all = append(all, open("127.0.0.2"))
	}
	if got, err := status(open("127.0.0.2")); err == nil {
		t.Errorf("a connection at twice the bound is answered %d", got)
	}
	for i, conn := range all {
		want := http.StatusOK
		if i >= most {
			want = http.StatusTooManyRequests
		}
		if got, err := status(conn); err != nil || got != want {
			t.Errorf("connection %d is answered %d, %v; want %d", i+1, got, err, want)
		}
	}
	if got, err := status(open("127.0.0.3")); err != nil || got != http.StatusOK {
		t.Errorf("another address is answered %d, %v", got, err)
	}
	for _, conn := range all {
		testkit.Must(t, conn.Close())
	}
	testkit.Must(t, testkit.Serving(t.Context(), callsFrom(t, "127.0.0.2", "").client, "http://"+b.HTTPAddr+"/version"))
}

// TestSlowRequests: who sends a request byte by byte does not hold a connection.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0"})
	conn, err := net.Dial("tcp", b.HTTPAddr)
	testkit.Must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: local")
	testkit.Must(t, err)
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("half a request holds its connection: %v", err)
	}
}

// TestConnectionsOfAPrincipal: a principal has so many connections and subscriptions;
// more are refused, and others get in.
func TestConnectionsOfAPrincipal(t *testing.T) {
	t.Parallel()
	const most = 5
	w := testkit.NewWorld(t, testkit.Options{Connections: most, Sync: time.Minute})
	p, other := w.Principal(eve), w.Principal(alpha)
	dial := func() (*nats.Conn, error) { return p.Dial(p.Login()) }
	var all []*nats.Conn
	for range most {
		nc, err := dial()
		testkit.Must(t, err)
		all = append(all, nc)
	}
	if _, err := dial(); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("one connection more: %v", err)
	}
	_, err := other.Dial(other.Login())
	testkit.Must(t, err)
	all[0].Close()
	var nc *nats.Conn
	testkit.Eventually(t, "a connection is free again", func() bool { // the server closes after the client
		nc, err = dial()
		return err == nil
	})

	for i := range 1001 {
		_, err := nc.SubscribeSync(fmt.Sprint("_INBOX.", eve.Token(), ".", i))
		testkit.Must(t, err)
	}
	testkit.Must(t, nc.Flush())
	if refused := nc.LastError(); refused == nil || !strings.Contains(refused.Error(), "maximum subscriptions exceeded") {
		t.Errorf("after 1001 subscriptions: %v", refused)
	}
}

// TestExposedKeys: a key file that others can read is reported at the start and by
// /healthz, which goes on being healthy.
func TestExposedKeys(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0", Log: zap.New(core)})
	health := func() (int, string) {
		answer, err := http.Get("http://" + b.HTTPAddr + "/healthz")
		testkit.Must(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		testkit.Must(t, err)
		return answer.StatusCode, string(text)
	}
	if status, text := health(); status != http.StatusOK || text != "ok\n" || logs.Len() > 0 {
		t.Errorf("health is %d %q, and the log has %d warnings", status, text, logs.Len())
	}
	b.Down()
	testkit.Must(t, os.Chmod(filepath.Join(b.Data, server.BrokerSeed), 0o644)) //nolint:gosec // which is what is reported
	b.Up()
	if status, text := health(); status != http.StatusOK || text != "ok\nwarning: broker.nk can be read by others\n" {
		t.Errorf("health is %d %q", status, text)
	}
	if found := logs.FilterField(zap.String("file", server.BrokerSeed)); found.Len() != 1 {
		t.Errorf("the log has %v", logs.All())
	}
}
