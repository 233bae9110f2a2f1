package testkit

import (
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// Keys has a client sign with a key, and log in as the principal who does.
func Keys(t testing.TB, signer performatives.Signer) []client.Option {
	t.Helper()
	return []client.Option{client.Key(signer), client.Login(Signer(t, LoginOf(t, signer)))}
}

// WriteKeys writes the seed of a key into a file, and that of its login key beside it.
func WriteKeys(t testing.TB, path string, key nkeys.KeyPair) {
	t.Helper()
	Must(t, server.WriteSeed(path, key))
	Must(t, server.WriteSeed(natslogin.FileBeside(path), LoginOf(t, key)))
}
