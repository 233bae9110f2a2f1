package login

import (
	"encoding/base64"
	"errors"

	"github.com/nats-io/nkeys"
)

// VerifyNonce checks the signature of the connection's nonce by a public user key ("U…"). The
// signature is in raw URL or standard base64, as in NATS.
func VerifyNonce(publicKey, signature string, nonce []byte) error {
	if publicKey == "" || signature == "" || len(nonce) == 0 {
		return errors.New("login needs an nkey and its signature")
	}
	if !nkeys.IsValidPublicUserKey(publicKey) {
		return errors.New("not a user nkey")
	}
	key, err := nkeys.FromPublicKey(publicKey)
	if err != nil {
		return errors.New("not a user nkey")
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		if sig, err = base64.StdEncoding.DecodeString(signature); err != nil {
			return errors.New("signature is not base64")
		}
	}
	if key.Verify(nonce, sig) != nil {
		return errors.New("signature does not fit the key")
	}
	return nil
}
