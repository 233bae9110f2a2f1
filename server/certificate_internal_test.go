package server

import (
	"crypto/tls"
	"crypto/x509"
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
	if last := logged.All()[logged.Len()-1].Message; last != "the certificate of --tls-cert expired on "+c.current.Leaf.NotAfter.Format(time.DateOnly) {
		t.Error(last)
	}
}

// What to do about a certificate that does not verify depends on why.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	leaf := &x509.Certificate{DNSNames: []string{"a.example"}}
	for want, why := range map[string]error{
		"Renew it, and check this machine's clock.": x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired},
		"Ask for a name that it has.":               x509.HostnameError{Certificate: leaf, Host: "b.example"},
		"Set --tls-ca to the file of its CA.":       x509.UnknownAuthorityError{Cert: leaf},
	} {
		if got := Untrusted(&tls.CertificateVerificationError{Err: why}, "--tls-ca"); got != want {
			t.Errorf("%v: %q, want %q", why, got, want)
		}
	}
}
