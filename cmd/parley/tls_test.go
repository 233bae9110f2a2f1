package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-asp/parley/test/testkit"
)

// TestTLS runs the broker with TLS on all that listens, and commands that speak it.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	server, serverKey := ca.Issue("server")
	own, ownKey := ca.Issue("client")
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/elsewhere/tls.txtar"},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"NATS", "WS", "HTTP"} {
				env.Setenv(name, testkit.FreeAddress(t))
			}
			env.Setenv("PARLEY_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("HOME", env.WorkDir)
			for name, file := range map[string]string{"CA": ca.File, "SERVER": server, "SERVER_KEY": serverKey, "OWN": own, "OWN_KEY": ownKey} {
				env.Setenv(name, file)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "terminate": terminate, "hangup": hangup, "serves": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(serves("https://"+ts.Getenv("HTTP")+"/healthz", ca.File, own, ownKey))
			},
		},
	})
}

// serves returns when the broker answers over HTTPS.
func serves(url, ca, own, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	text, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(own, key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}}}
	defer transport.CloseIdleConnections()
	return testkit.Serving(ctx, &http.Client{Transport: transport}, url)
}
