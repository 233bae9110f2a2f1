package server

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A certificate that expires while the process runs is in the log once a day, before and after it has.
func TestCertificateExpires(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	now := time.Now()
	c := &certificate{log: zap.New(core), current: &tls.Certificate{Leaf: &x509.Certificate{NotAfter: now.Add(expiresSoon + time.Hour)}}}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {2 * time.Hour, 1}, {3 * time.Hour, 1}, {27 * time.Hour, 2}, {expiresSoon + 2*time.Hour, 3}} {
		c.warn(now.Add(step.after))
		if got := logged.Len(); got != step.want {
			t.Errorf("after %s there are %d warnings, want %d", step.after, got, step.want)
		}
	}
	if last := logged.All()[logged.Len()-1].Message; last != "the certificate of --tls-cert expired on "+c.current.Leaf.NotAfter.UTC().Format("2006-01-02 15:04 MST") {
		t.Error(last)
	}
}

// A certificate that is in the files too early is used once it is valid, also if nobody touches them again.
func TestCertificateEarly(t *testing.T) {
	t.Parallel()
	now, dir := time.Now(), t.TempDir()
	c := certificate{files: TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}, log: zap.NewNop()}
	issue := func(from time.Time) {
		public, private, err := ed25519.GenerateKey(nil)
		must(t, err)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(2 * time.Hour)}
		der, err := x509.CreateCertificate(nil, template, template, public, private)
		must(t, err)
		key, err := x509.MarshalPKCS8PrivateKey(private)
		must(t, err)
		must(t, os.WriteFile(c.files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		must(t, os.WriteFile(c.files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	}
	before := &tls.Certificate{Leaf: &x509.Certificate{NotAfter: now.Add(2 * expiresSoon)}}
	c.current = before
	shown := func() *tls.Certificate {
		c.looked = time.Time{}
		got, err := c.get(nil)
		must(t, err)
		return got
	}
	issue(now.Add(time.Hour))
	if shown() != before || c.from.Before(now) {
		t.Error("a certificate that is not valid yet is in use")
	}
	issue(now.Add(-time.Hour)) // as if an hour and more had passed
	c.changed, c.from = c.modified(), c.from.Add(-2*time.Hour)
	if shown() == before {
		t.Error("a certificate that has become valid is not in use")
	}
}

// What to do about a certificate that does not verify depends on why.
func TestWrongTLS(t *testing.T) {
	t.Parallel()
	leaf := &x509.Certificate{DNSNames: []string{"a.example"}}
	for want, why := range map[string]error{
		"Renew it, and check this machine's clock.": x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired},
		"Ask for a name that it has.":               x509.HostnameError{Certificate: leaf, Host: "b.example"},
		"Set --tls-ca to the file of its CA.":       x509.UnknownAuthorityError{Cert: leaf},
	} {
		if got := WrongTLS(&tls.CertificateVerificationError{Err: why}, "--tls-ca"); got != "The server's certificate is not trusted. "+want {
			t.Errorf("%v: %q, want %q", why, got, want)
		}
	}
}
