// Package sealing seals what a store keeps at rest under keys that derive from a secret.
//
//	seal, err := sealing.New(secret, "parley hosted keys v1")
//	sealed := seal.Seal(nil, nil, plain, boundTo)
//	plain, err := seal.Open(nil, nil, sealed, boundTo)
package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// New makes the AEAD, AES-256-GCM, of one purpose: what was sealed for one does not open for another.
// It draws a random nonce each time; an installation seals far fewer than would make two of 96 bits
// meet. Without a secret it is nil.
func New(secret []byte, purpose string) (cipher.AEAD, error) {
	if len(secret) == 0 {
		return nil, nil //nolint:nilnil // nothing is sealed
	}
	key, err := hkdf.Expand(sha256.New, secret, purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
