package server

import (
	"errors"
	"fmt"

	"github.com/parley-asp/parley/inbox/openid"
)

// ErrSignIn means that the OpenID provider cannot send people back here.
var ErrSignIn = errors.New("--sign-in needs --http-url, the https URL of this installation, and is not for --dev, which has no logins")

// signIn is the OpenID provider that signs people in; nil is none.
func (o Options) signIn() (*openid.Provider, error) {
	if o.SignIn == nil {
		return nil, nil
	}
	if o.Dev {
		return nil, ErrSignIn
	}
	p, err := openid.New(o.SignIn, o.HTTPURL, o.Now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSignIn, err)
	}
	return p, nil
}
