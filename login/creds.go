package login

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// UserJWT is what a NATS credentials file (.creds) has beside the seed: for clients that log in
// with such a file only. It is no secret and opens no door by itself: a server in operator mode
// asks the callout about whoever presents it, where the key decides as it does alone.
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

// Creds is a credentials file of a user JWT and the key that it is for. It is as secret as the
// seed in it.
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

// keyOf is the public key that a login has to prove: a bare nkey, or the subject of the JWT
// that it brought. Whoever signed that JWT, it says only which key it is for, and until when:
// what the holder may do is what the key is registered for.
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
