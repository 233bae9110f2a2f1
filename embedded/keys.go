package embedded

import (
	"errors"

	"github.com/nats-io/nkeys"
)

// Keys are the public keys that a server has to know; the seeds stay with the broker.
type Keys struct {
	Broker  string // user ("U…"), the one user of account ASP
	Callout string // user ("U…") of the login service, in account AUTH
	Issuer  string // account key ("A…") that signs what logins are answered with
	System  string // user ("U…") that disconnects whoever was removed, for a server elsewhere
}

// check insists on what a server with logins has to know.
func (k Keys) check() error {
	switch {
	case !nkeys.IsValidPublicUserKey(k.Broker):
		return errors.New("the broker's key is not a user nkey")
	case !nkeys.IsValidPublicUserKey(k.Callout) || k.Callout == k.Broker:
		return errors.New("the login service's key is not a user nkey of its own")
	case !nkeys.IsValidPublicAccountKey(k.Issuer):
		return errors.New("the login service's issuer is not an account nkey")
	}
	return nil
}
