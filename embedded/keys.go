package embedded

import (
	"errors"

	"github.com/nats-io/nkeys"
)

// Keys are the public keys that a server needs. The seeds stay with the broker.
type Keys struct {
	Broker  string // user ("U…"), the only user of account ASP
	Callout string // user ("U…") of the login service, in account AUTH
	Issuer  string // account key ("A…") that signs the replies to logins
	System  string // user ("U…") that disconnects removed principals, for external servers
}

// check checks the keys that a server with logins needs.
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
