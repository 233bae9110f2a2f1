package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// New connections see a renewed certificate, open ones go on, and broken files change nothing.
func TestCertificateReload(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	own, next := ca.issues("server"), ca.issues("renewed")
	w := start(t, server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", HTTP: "127.0.0.1:0", TLS: own}, ca.with(server.TLS{}))
	text, err := os.ReadFile(ca.File)
	testkit.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", w.HTTPAddr, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	shown := func() string { return string(dial().ConnectionState().PeerCertificates[0].Raw) }
	renew := func(cert, key []byte) error {
		testkit.Must(t, os.WriteFile(own.Cert, cert, 0o600))
		testkit.Must(t, os.WriteFile(own.Key, key, 0o600))
		return w.Reload(t.Context(), server.Options{})
	}
	first, before := dial(), shown()
	if err := renew([]byte("broken"), []byte("broken")); err == nil || shown() != before {
		t.Errorf("a broken file is answered %v", err)
	}
	for from, want := range map[time.Duration]string{-3 * time.Hour: "expired on ", time.Hour: "is not valid before "} {
		other := server.TLS{}
		other.Cert, other.Key = ca.IssueFrom("other", time.Now().Add(from))
		if err := other.Read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of a certificate from %s on, config check says %v", from, err)
		}
		cert, err := os.ReadFile(other.Cert)
		testkit.Must(t, err)
		key, err := os.ReadFile(other.Key)
		testkit.Must(t, err)
		if err := renew(cert, key); err == nil || !strings.Contains(err.Error(), want) || shown() != before {
			t.Errorf("a certificate from %s on is answered %v", from, err)
		}
	}
	cert, err := os.ReadFile(next.Cert)
	testkit.Must(t, err)
	key, err := os.ReadFile(next.Key)
	testkit.Must(t, err)
	testkit.Must(t, renew(cert, key))
	testkit.Must(t, w.Reload(t.Context(), server.Options{})) // with nothing new
	if shown() == before {
		t.Error("the certificate before is still shown")
	}
	if _, err := first.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n")); err != nil {
		t.Error("the open connection ended:", err)
	}
	answer, err := io.ReadAll(first)
	if err != nil || !strings.Contains(string(answer), "\r\n\r\nok\nwarning: the certificate of --tls-cert expires on ") {
		t.Errorf("the open connection is answered %q, %v", answer, err)
	}
}
