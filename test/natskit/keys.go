package natskit

import (
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/login"
)

// NewKey is a new key of a user.
func NewKey(t testing.TB) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	Must(t, err)
	return key
}

// Public is a key's public half.
func Public(t testing.TB, key nkeys.KeyPair) string {
	t.Helper()
	public, err := key.PublicKey()
	Must(t, err)
	return public
}

// Signer signs envelopes with a key.
func Signer(t testing.TB, key nkeys.KeyPair) performatives.Signer {
	t.Helper()
	signer, err := performatives.NewSigner(key)
	Must(t, err)
	return signer
}

// Login logs a connection in as the principal who signs with a key.
func Login(t testing.TB, key performer) nats.Option {
	t.Helper()
	return Bare(t, LoginOf(t, key))
}

// Bare logs a connection in with this very key.
func Bare(t testing.TB, key nkeys.KeyPair) nats.Option {
	t.Helper()
	return nats.Nkey(Public(t, key), key.Sign)
}

// performer is a key, or who signs with it.
type performer interface {
	Sign(data []byte) ([]byte, error)
}

// LoginOf is the login key of the principal who signs with a key. Tests derive the one from the other, so that
// they have one key to pass on.
func LoginOf(t testing.TB, key performer) nkeys.KeyPair {
	t.Helper()
	signature, err := key.Sign([]byte("the login key of a test"))
	Must(t, err)
	seed := sha256.Sum256(signature)
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, seed[:])
	Must(t, err)
	return pair
}

// LoginKeys are the login keys of a card with a key.
func LoginKeys(t testing.TB, key performer) []performatives.Key {
	t.Helper()
	return []performatives.Key{performatives.Key(Public(t, LoginOf(t, key)))}
}

// NewLogins signs the logins of an installation with a new key, which is returned too.
func NewLogins(t testing.TB) (*login.Authority, nkeys.KeyPair) {
	t.Helper()
	issuer, err := nkeys.CreateAccount()
	Must(t, err)
	authority, err := login.NewAuthority(issuer)
	Must(t, err)
	return authority, issuer
}

// NewID is a new id of a message.
func NewID() performatives.MessageID { return performatives.MessageID(newID()) }

// NewSession is a new id of a session.
func NewSession() performatives.SessionID { return performatives.SessionID(newID()) }

func newID() string { return uuid.Must(uuid.NewV7()).String() }
