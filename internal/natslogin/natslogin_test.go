package natslogin_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/test/testkit"
)

// A login signs what has the form of NATS's nonces, and nothing else that a server asks for.
func TestOnlyNonces(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	testkit.Must(t, err)
	sign := natslogin.Only(pair.Sign)
	if _, err := sign([]byte("PXoWU7zWAMt75FY")); err != nil {
		t.Errorf("a nonce: %v", err)
	}
	for _, asked := range []string{
		"", "{}", `{"performative":"ACCEPT"}`, "PXoWU7zWAMt75F", "PXoWU7zWAMt75FYx", "PXoWU7zWAMt75F\n", "parley token: x", "aaaa.bbbb.ccccc",
		base64.RawURLEncoding.EncodeToString(make([]byte, 32)),
	} {
		if signature, err := sign([]byte(asked)); !errors.Is(err, natslogin.ErrNonce) || signature != nil {
			t.Errorf("%q is signed: %v", asked, err)
		}
	}
	// What servers really ask for has the form.
	b := testkit.StartBroker(t, testkit.Options{})
	key := b.Operator()
	nc, err := nats.Connect(b.URL, natslogin.Key(testkit.Public(t, key), key.Sign), nats.CustomInboxPrefix("_INBOX.operator"))
	testkit.Must(t, err)
	nc.Close()
}
