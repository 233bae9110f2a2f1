// Package natslogin logs in to NATS servers. A server chooses the nonce that a login signs, so a key that logs in
// signs nothing else, and these options sign nothing that does not look like a nonce of NATS (docs/SECURITY.md).
//
//	nc, err := nats.Connect(url, natslogin.Key(public, pair.Sign))
package natslogin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// ErrNonce is returned for a server that asks for a signature of something else than a nonce.
var ErrNonce = errors.New("the server asks this login to sign something that is not a nonce of NATS: do not trust it")

// nonce is the form of NATS's nonces: 11 random bytes in base64url without padding.
var nonce = regexp.MustCompile(`^[A-Za-z0-9_-]{15}$`)

// Only signs nonces, and nothing else that a server asks for.
func Only(sign nats.SignatureHandler) nats.SignatureHandler {
	return func(asked []byte) ([]byte, error) {
		if !nonce.Match(asked) {
			return nil, ErrNonce
		}
		return sign(asked)
	}
}

// Key logs in with a public user nkey ("U…").
func Key(public string, sign nats.SignatureHandler) nats.Option {
	return nats.Nkey(public, Only(sign))
}

// JWT logs in with a user JWT.
func JWT(token string, sign nats.SignatureHandler) nats.Option {
	return nats.UserJWT(func() (string, error) { return token, nil }, Only(sign))
}

// Creds logs in with a NATS credentials file, which is read anew for each login.
func Creds(path string) nats.Option {
	return nats.UserJWT(func() (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return jwt.ParseDecoratedJWT(text)
	}, Only(func(asked []byte) ([]byte, error) {
		pair, err := Seed(path)
		if err != nil {
			return nil, err
		}
		defer pair.Wipe()
		return pair.Sign(asked)
	}))
}

// Seed reads the seed in a file of its own or in a credentials file.
func Seed(path string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.ParseDecoratedNKey(bytes.ReplaceAll(text, []byte("\r"), nil))
	if err != nil {
		return nil, fmt.Errorf("%s: no nkey seed in it", path)
	}
	return pair, nil
}

// FileBeside is where the seed of a principal's login key is by default: alpha.login.nk beside alpha.nk.
func FileBeside(signing string) string {
	kind := filepath.Ext(signing)
	return strings.TrimSuffix(signing, kind) + ".login" + kind
}
