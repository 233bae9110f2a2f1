package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

// creds is a credentials file of a key that alpha is, or will be, registered with.
func (w *world) creds(key nkeys.KeyPair) string {
	w.Helper()
	token, err := w.operator.UserJWT(w.ctx, alpha, performatives.Key(public(w.T, key)))
	must(w.T, err)
	text, err := login.Creds(token, key)
	must(w.T, err)
	file := filepath.Join(w.TempDir(), "alpha.creds")
	must(w.T, os.WriteFile(file, text, 0o600))
	return file
}

// A .creds file lets in whom the bare key does, to the same subjects, and no longer.
func TestCreds(t *testing.T) {
	t.Parallel()
	operated(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		key := newKey(t)
		file := w.creds(key)
		if _, err := w.dial(alpha, nats.UserCredentials(file)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("before the key is registered: %v, want %v", err, nats.ErrAuthorization)
		}
		w.gives(alpha, key)
		other := w.registers(beta)

		c, err := client.Connect(w.ctx, w.node.URL, alpha, client.Creds(file))
		must(t, err)
		defer c.Close()
		_, err = c.Invite(w.ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "storage"})
		must(t, err)
		_, err = c.UserJWT(w.ctx, beta, "")
		if !errors.Is(err, client.Refused(session.Unauthorized)) {
			t.Errorf("the JWT of another: %v", err)
		}

		l, err := w.dial(alpha, nats.UserCredentials(file))
		must(t, err)
		w.asks(l, alpha)
		must(t, l.Publish("asp.session.s1", nil))
		if allowed(t, l) {
			t.Error("may write into transcripts")
		}
		bare := w.logsIn(alpha, key)
		w.asks(bare, alpha)

		_, err = w.operator.RemoveAgent(w.ctx, alpha)
		must(t, err)
		w.isOut(l)
		w.isOut(bare)
		if _, err := w.dial(alpha, nats.UserCredentials(file)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("who is removed: %v, want %v", err, nats.ErrAuthorization)
		}
		w.asks(w.logsIn(beta, other), beta)
	})
}

// What is wrong with a JWT, or with who brings it, keeps out; what else it says gives nothing.
func TestForgedCreds(t *testing.T) {
	t.Parallel()
	operated(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		key, thief := w.registers(alpha), newKey(t)
		issued, err := w.operator.UserJWT(w.ctx, alpha, "")
		must(t, err)
		account, err := nkeys.CreateAccount()
		must(t, err)
		owner, err := server.ReadSeed(filepath.Join(o.Data, server.BrokerSeed))
		must(t, err)
		forged := func(subject, account string, by nkeys.KeyPair) string {
			claims := jwt.NewUserClaims(subject)
			claims.Name, claims.IssuerAccount = alpha.Token(), account
			token, err := claims.Encode(by)
			must(t, err)
			return token
		}
		decoded, err := jwt.DecodeUserClaims(issued)
		must(t, err)
		in := func(token string, signs nkeys.KeyPair) nats.Option {
			return nats.UserJWT(func() (string, error) { return token, nil }, signs.Sign)
		}
		var tries sync.WaitGroup
		for name, how := range map[string]nats.Option{
			"another's signature":                  in(issued, thief),
			"an old nonce":                         nats.UserJWT(func() (string, error) { return issued, nil }, func([]byte) ([]byte, error) { return key.Sign([]byte("old")) }),
			"signed by an account of one's own":    in(forged(public(t, key), "", account), key),
			"signed by it in the name of ours":     in(forged(public(t, key), decoded.IssuerAccount, account), key),
			"the broker's key, signed by the same": in(forged(public(t, owner), decoded.IssuerAccount, account), thief),
			"not a JWT":                            in("eyJ0eXAiOiJKV1QifQ.e30.AA", key),
			"nothing":                              nats.Name("nobody"),
		} {
			// Where the server itself finds the fault it says nothing for as long as a login may take.
			tries.Go(func() {
				if _, err := w.dial(alpha, how); err == nil {
					t.Errorf("%s: let in", name)
				}
			})
		}
		tries.Wait()
		l, err := w.dial(alpha, in(issued, key))
		must(t, err)
		w.asks(l, alpha)
	})
}

// A server in config mode does not look at the JWT: nobody is told that it would.
func TestNoCredsInConfigMode(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := start(t, server.Options{Data: data, NATS: external(t, data)})
	w.registers(alpha)
	if _, err := w.operator.UserJWT(w.ctx, alpha, ""); !errors.Is(err, client.Refused(session.Unauthorized)) {
		t.Errorf("a JWT of a server in config mode: %v", err)
	}
}

// Who is removed is gone within two seconds (the "at once"), and what a
// machine that is busy with other tests adds.
func TestRemovalIsAtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		l := w.logsIn(alpha, w.registers(alpha))
		from := time.Now()
		_, err := w.operator.RemoveAgent(w.ctx, alpha)
		must(t, err)
		w.isOut(l)
		if took := time.Since(from); took > 10*time.Second {
			t.Errorf("out after %s", took)
		}
	})
}
