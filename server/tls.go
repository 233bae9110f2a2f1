package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// TLS names the PEM files of encrypted connections; without Cert, clients come in the clear.
type TLS struct {
	Cert, Key string // of this side, for NATS, WebSocket and HTTP, and for an external server that asks
	CA        string // what the other side must show a certificate of: clients (mutual TLS), and an external server
}

// ErrTLS is for files that do not go together.
var ErrTLS = errors.New("a certificate and its key go together, and a CA for clients needs them")

// server is what listeners do; nil is no TLS. TLS 1.2 is the least. Where NATS is elsewhere a
// CA alone is for that.
func (t TLS) server(elsewhere bool) (*tls.Config, error) {
	if (t.Cert == "") != (t.Key == "") || t.Cert == "" && t.CA != "" && !elsewhere {
		return nil, ErrTLS
	}
	if t.Cert == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	own, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if t.CA == "" {
		return config, nil
	}
	text, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("TLS CA: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("TLS CA: no certificate in %s", t.CA)
	}
	return config, nil
}

// Client is what a connection of NATS to this URL does: it verifies the server by CA, or else
// by those of the system, and shows Cert if it is asked. A URL that does not begin with tls://
// or wss:// is TLS all the same where there is a CA.
func (t TLS) Client(url string) []nats.Option {
	var options []nats.Option
	if t.CA != "" {
		options = append(options, nats.RootCAs(t.CA))
	}
	secure := t.CA != "" || strings.HasPrefix(url, "tls://") || strings.HasPrefix(url, "wss://")
	if t.Cert != "" && secure {
		options = append(options, nats.ClientCert(t.Cert, t.Key))
	}
	return options
}
