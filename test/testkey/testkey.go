// Package testkey derives keys from names: a test that is run again has the same keys, and
// so do the files that it compares with.
package testkey

import (
	"crypto/sha256"

	"github.com/nats-io/nkeys"
)

// Of is the key of a name. It panics rather than return an error: any name has one.
func Of(name string) nkeys.KeyPair {
	seed := sha256.Sum256([]byte(name))
	raw, err := nkeys.EncodeSeed(nkeys.PrefixByteUser, seed[:])
	if err != nil {
		panic(err)
	}
	pair, err := nkeys.FromSeed(raw)
	if err != nil {
		panic(err)
	}
	return pair
}
