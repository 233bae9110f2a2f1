package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// creds writes a credentials file for alpha, which signs with a key and may not be registered yet.
func (w world) creds(signs nkeys.KeyPair) string {
	w.Helper()
	key := testkit.LoginOf(w, signs)
	token, err := w.OperatorClient().UserJWT(w.Ctx, alpha, performatives.Key(testkit.Public(w, key)))
	testkit.Must(w, err)
	text, err := login.Creds(token, key)
	testkit.Must(w, err)
	file := filepath.Join(w.TempDir(), "alpha.creds")
	testkit.Must(w, os.WriteFile(file, text, 0o600))
	return file
}

// A .creds file grants what the bare key grants, for as long.
func TestCreds(t *testing.T) {
	t.Parallel()
	operated(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		key := testkit.NewKey(t)
		file := w.creds(key)
		if _, err := w.dial(alpha, nats.UserCredentials(file)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("before the key is registered: %v, want %v", err, nats.ErrAuthorization)
		}
		w.gives(alpha, key)
		other := w.registers(beta)

		c, err := client.Connect(w.Ctx, w.URL, alpha, client.Creds(file), client.Key(testkit.Signer(t, key)))
		testkit.Must(t, err)
		defer c.Close()
		_, err = c.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "storage"})
		testkit.Must(t, err)
		_, err = c.UserJWT(w.Ctx, beta, "")
		if !errors.Is(err, client.Refused(session.Unauthorized)) {
			t.Errorf("the JWT of another: %v", err)
		}

		l, err := w.dial(alpha, nats.UserCredentials(file))
		testkit.Must(t, err)
		w.asks(l, alpha)
		testkit.Must(t, l.Publish("asp.session.s1", nil))
		if testkit.Allowed(t, l) {
			t.Error("may write into transcripts")
		}
		bare := w.logsIn(alpha, key)
		w.asks(bare, alpha)

		_, err = w.OperatorClient().RemoveAgent(w.Ctx, alpha)
		testkit.Must(t, err)
		testkit.Cut(t, l)
		testkit.Cut(t, bare)
		if _, err := w.dial(alpha, nats.UserCredentials(file)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("who is removed: %v, want %v", err, nats.ErrAuthorization)
		}
		w.asks(w.logsIn(beta, other), beta)
	})
}

// A forged or stolen JWT is refused, and other claims in a genuine one grant nothing.
func TestForgedCreds(t *testing.T) {
	t.Parallel()
	operated(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		key, thief := testkit.LoginOf(t, w.registers(alpha)), testkit.NewKey(t)
		issued, err := w.OperatorClient().UserJWT(w.Ctx, alpha, "")
		testkit.Must(t, err)
		account, err := nkeys.CreateAccount()
		testkit.Must(t, err)
		owner, err := server.ReadSeed(filepath.Join(o.Data, server.BrokerLogin))
		testkit.Must(t, err)
		forged := func(subject, account string, by nkeys.KeyPair) string {
			claims := jwt.NewUserClaims(subject)
			claims.Name, claims.IssuerAccount = alpha.Token(), account
			token, err := claims.Encode(by)
			testkit.Must(t, err)
			return token
		}
		decoded, err := jwt.DecodeUserClaims(issued)
		testkit.Must(t, err)
		in := func(token string, signs nkeys.KeyPair) nats.Option {
			return nats.UserJWT(func() (string, error) { return token, nil }, signs.Sign)
		}
		var tries sync.WaitGroup
		for name, how := range map[string]nats.Option{
			"another's signature":                  in(issued, thief),
			"an old nonce":                         nats.UserJWT(func() (string, error) { return issued, nil }, func([]byte) ([]byte, error) { return key.Sign([]byte("old")) }),
			"signed by an account of one's own":    in(forged(testkit.Public(t, key), "", account), key),
			"signed by it in the name of ours":     in(forged(testkit.Public(t, key), decoded.IssuerAccount, account), key),
			"the broker's key, signed by the same": in(forged(testkit.Public(t, owner), decoded.IssuerAccount, account), thief),
			"not a JWT":                            in("eyJ0eXAiOiJKV1QifQ.e30.AA", key),
			"nothing":                              nats.Name("nobody"),
		} {
			// In parallel: if the NATS server itself refuses, the client waits for the login timeout.
			tries.Go(func() {
				if _, err := w.dial(alpha, how); err == nil {
					t.Errorf("%s: let in", name)
				}
			})
		}
		tries.Wait()
		l, err := w.dial(alpha, in(issued, key))
		testkit.Must(t, err)
		w.asks(l, alpha)
	})
}

// A server in config mode ignores JWTs, so the broker issues none.
func TestNoCredsInConfigMode(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Configured(t))
	w.registers(alpha)
	if _, err := w.OperatorClient().UserJWT(w.Ctx, alpha, ""); !errors.Is(err, client.Refused(session.Unauthorized)) {
		t.Errorf("a JWT of a server in config mode: %v", err)
	}
}

// Removing a principal closes its connections without their doing anything.
func TestRemovalIsAtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		l := w.logsIn(alpha, w.registers(alpha))
		_, err := w.OperatorClient().RemoveAgent(w.Ctx, alpha)
		testkit.Must(t, err)
		testkit.Cut(t, l)
	})
}
