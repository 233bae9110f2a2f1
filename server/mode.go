package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
)

// A mode is who decides which keys get into the NATS server, and how the server is told.
type mode int

const (
	open       mode = iota // nobody: the embedded server under --dev
	configured             // this node; a server elsewhere that has what Config says
	operated               // this node; the embedded server, and one elsewhere that has what Nsc says
	foreign                // the server elsewhere
)

// SystemJWT is the file of a data directory with the user JWT that the system key has on a
// server elsewhere in operator mode: it is of that operator's system account.
const SystemJWT = "system.jwt"

// mode finds out which one it is. Credentials of an account that is the node's own tell that
// the server has what Nsc says.
func (k keys) mode(o Options) (mode, error) {
	switch {
	case o.NATS == "" && o.Dev:
		return open, nil
	case o.NATS == "":
		return operated, nil
	case o.NATSCreds != "":
		text, err := os.ReadFile(o.NATSCreds)
		if err != nil {
			return foreign, err
		}
		token, err := jwt.ParseDecoratedJWT(text)
		if err != nil {
			return foreign, fmt.Errorf("%s: no user JWT in it", o.NATSCreds)
		}
		user, err := jwt.DecodeUserClaims(token)
		if err != nil {
			return foreign, fmt.Errorf("%s: no user JWT in it", o.NATSCreds)
		}
		if user.IssuerAccount == k.authority.Account(login.BrokerAccount) && !o.Dev {
			return operated, nil
		}
		return foreign, nil
	case o.NATSOptions != nil, o.Dev:
		return foreign, nil
	default:
		return configured, nil
	}
}

// servesLogins tells whether the server asks this node whom it may let in.
func (m mode) servesLogins() bool { return m == configured || m == operated }

// credentials is how the broker logs in where others decide, besides NATSOptions.
func (o Options) credentials() (options []nats.Option) {
	if o.NATSCreds != "" {
		options = append(options, nats.UserCredentials(o.NATSCreds))
	}
	return options
}

// login is how one of the node's own keys logs in.
func (m mode) login(k keys, o Options, account string, key nkeys.KeyPair) (nats.Option, error) {
	public, err := key.PublicKey()
	switch {
	case err != nil:
		return nil, err
	case m != operated:
		return nats.Nkey(public, key.Sign), nil
	case account == login.BrokerAccount && o.NATSCreds != "":
		return nats.UserCredentials(o.NATSCreds), nil
	case account == login.SystemAccount:
		text, err := os.ReadFile(filepath.Join(o.Data, SystemJWT))
		if err != nil {
			return nil, err
		}
		token, err := jwt.ParseDecoratedJWT(bytes.TrimSpace(text))
		return nats.UserJWT(func() (string, error) { return token, nil }, key.Sign), err
	default:
		return k.authority.LogIn(account, "parley "+account, key)
	}
}

// credentials makes the user JWTs of .creds files, where the server takes them.
func (m mode) credentials(k keys) func(performatives.Agent, performatives.Key) (string, error) {
	if m != operated && m != open {
		return nil
	}
	return func(a performatives.Agent, key performatives.Key) (string, error) {
		return k.authority.UserJWT(login.Identity{Name: a.Token(), Role: login.Principal}, string(key))
	}
}
