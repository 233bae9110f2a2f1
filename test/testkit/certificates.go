package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority issues certificates for 127.0.0.1, and for clients.
type Authority struct {
	File string // PEM, with its own certificate

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody knows of yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	ca := &Authority{t: t, dir: t.TempDir()}
	ca.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca.File, _, ca.key = ca.write("ca", ca.cert)
	return ca
}

// Issue writes a certificate and its key, in PEM files.
func (ca *Authority) Issue(name string) (cert, key string) {
	ca.t.Helper()
	return ca.IssueFrom(name, time.Now().Add(-time.Hour))
}

// IssueFrom is Issue of a certificate that is valid for two hours from then on.
func (ca *Authority) IssueFrom(name string, from time.Time) (cert, key string) {
	ca.t.Helper()
	cert, key, _ = ca.write(name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: from.Add(2 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	return cert, key
}

// write signs a certificate, the authority's own by itself.
func (ca *Authority) write(name string, cert *x509.Certificate) (certFile, keyFile string, key *ecdsa.PrivateKey) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ca.must(err)
	signer := ca.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca.cert, &key.PublicKey, signer)
	ca.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ca.must(err)
	dir, err := os.MkdirTemp(ca.dir, "") // tests side by side may ask for the same name
	ca.must(err)
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	ca.must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ca.must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return certFile, keyFile, key
}

func (ca *Authority) must(err error) {
	ca.t.Helper()
	if err != nil {
		ca.t.Fatal(err)
	}
}
