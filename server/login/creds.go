package login

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// UserJWT returns the JWT for a NATS credentials file (.creds), for clients that can log in with
// such a file only. It is not a secret and grants nothing: a server in operator mode asks the
// callout about its holder, and the callout goes by the key.
func (a *Authority) UserJWT(id Identity, key string) (string, error) {
	if !nkeys.IsValidPublicUserKey(key) {
		return "", errors.New("login: not a user nkey")
	}
	if _, err := Permissions(id); err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(key)
	claims.Name, claims.Permissions = id.Name, nothing()
	return a.sign(CalloutAccount, claims)
}

// Creds returns a credentials file with a user JWT and the seed of its key, so it is a secret.
func Creds(userJWT string, key nkeys.KeyPair) ([]byte, error) {
	claims, err := jwt.DecodeUserClaims(userJWT)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	if claims.Subject != public {
		return nil, errors.New("login: the JWT is for another key")
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return jwt.FormatUserConfig(userJWT, seed)
}

// keyOf is the public key that a login has to prove: a bare nkey, or the subject of its JWT. The
// JWT counts for the key and its expiry only, whoever signed it. The registered identity of the
// key determines the permissions.
func keyOf(offered jwt.ConnectOptions) (string, error) {
	if offered.Nkey != "" || offered.JWT == "" {
		return offered.Nkey, nil
	}
	claims, err := jwt.DecodeUserClaims(offered.JWT)
	if err != nil {
		return "", errors.New("not a user JWT")
	}
	checked := jwt.CreateValidationResults()
	claims.Validate(checked)
	if checked.IsBlocking(true) {
		return "", errors.New("the user JWT is invalid or has expired")
	}
	return claims.Subject, nil
}
