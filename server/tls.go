package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// TLS names the PEM files of encrypted connections. Without Cert, clients connect in plain text.
type TLS struct {
	Cert, Key string // of this side, for NATS, WebSocket and HTTP, and for an external server that requests it
	CA        string // verifies the other side: clients (mutual TLS) and an external server
	NATSCA    string // verifies an external server; empty is CA
}

// ErrTLS means that the files are incomplete.
var ErrTLS = errors.New("--tls-cert needs --tls-key, and --tls-ca of an embedded server needs both")

// check refuses files that are incomplete. With an external NATS server, a CA alone verifies that
// server.
func (t TLS) check(external bool) error {
	if (t.Cert == "") != (t.Key == "") || t.Cert == "" && t.CA != "" && !external {
		return ErrTLS
	}
	return nil
}

// Read reads the files as a start does, and finds a certificate of which that only warns. Each error that it joins is a *[Fault].
func (t TLS) Read() error {
	var faults []error
	for _, ca := range []struct{ flag, file string }{{"tls-ca", t.CA}, {"nats-ca", t.NATSCA}} {
		if ca.file == "" {
			continue
		}
		if _, err := pool(ca.file); err != nil {
			faults = append(faults, &Fault{[]string{ca.flag}, err})
		}
	}
	if t.Cert != "" && t.Key != "" { // Check refuses one without the other
		own, err := openCertificate(t, zap.NewNop())
		if err == nil {
			err = invalid(own.current.Leaf, time.Now())
		}
		if err != nil {
			faults = append(faults, &Fault{[]string{"tls-cert", "tls-key"}, err})
		}
	}
	return errors.Join(faults...)
}

// server returns the listeners' configuration; nil means no TLS. The minimum is TLS 1.2.
func (t TLS) server(log *zap.Logger) (*tls.Config, *certificate, error) {
	if t.Cert == "" {
		return nil, nil, nil
	}
	own, err := openCertificate(t, log)
	if err != nil {
		return nil, nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: own.get}
	if t.CA == "" {
		return config, own, nil
	}
	if config.ClientCAs, err = pool(t.CA); err != nil {
		return nil, nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, own, nil
}

// Client returns the options of a NATS connection to this URL. It verifies the
// server by NATSCA, by CA, or by the system's CAs, and presents Cert if the server requests
// one. With a CA it uses TLS even if the URL does not begin with tls:// or wss://.
func (t TLS) Client(url string) []nats.Option {
	var options []nats.Option
	ca := cmp.Or(t.NATSCA, t.CA)
	if ca != "" {
		options = append(options, nats.RootCAs(ca))
	}
	secure := ca != "" || strings.HasPrefix(url, "tls://") || strings.HasPrefix(url, "wss://")
	if t.Cert != "" && secure {
		options = append(options, nats.ClientCert(t.Cert, t.Key))
	}
	return options
}

// Web is for an HTTPS client that does as Client does.
func (t TLS) Web() (http.RoundTripper, error) {
	if t == (TLS{}) {
		return http.DefaultTransport, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		var err error
		if config.RootCAs, err = pool(t.CA); err != nil {
			return nil, err
		}
	}
	if t.Cert != "" {
		own, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = usual.Clone()
	}
	transport.TLSClientConfig = config
	return transport, nil
}

// pool reads a CA.
func pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("TLS CA: %w", err)
	}
	all := x509.NewCertPool()
	if !all.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("TLS CA: no certificate in %s", file)
	}
	return all, nil
}

// WrongTLS says what to do about a TLS handshake that failed, "" for another error; flag names the CA.
func WrongTLS(err error, flag string) string {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	network, _ := errors.AsType[*net.OpError](err)
	const distrusted = "The server's certificate is not trusted. "
	switch {
	case err == nil:
		return ""
	case untrusted && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return distrusted + "Renew it, and check this machine's clock."
	case untrusted && other:
		return distrusted + "Ask for a name that it has."
	case untrusted:
		return distrusted + "Set " + flag + " to the file of its CA."
	case network != nil && network.Op == "remote error" && strings.Contains(err.Error(), "certificate"), strings.Contains(err.Error(), "closed by remote after TLS handshake"):
		return "The server lets in only clients with a certificate that it trusts. --tls-cert and --tls-key name one, where the URL begins with tls:// or https://."
	}
	return ""
}
