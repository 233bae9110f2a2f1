package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/login"
)

// A mode is who authorizes logins to the NATS server.
type mode int

const (
	open       mode = iota // nobody: the embedded server under --dev
	configured             // the broker, by auth callout on an external server configured by Config
	operated               // the broker, by auth callout on the embedded server or one configured by Nsc
	external               // the external server
)

// SystemJWT is the file in a data directory with the system key's user JWT for an
// external server in operator mode. That operator's system account issued it.
const SystemJWT = "system.jwt"

// mode derives the mode from the options. Credentials of the broker's own account
// mean that Nsc configured the server.
func (k keys) mode(o Options) (mode, error) {
	switch {
	case o.NATS == "" && o.Dev:
		return open, nil
	case o.NATS == "":
		return operated, nil
	case o.NATSCreds != "":
		text, err := os.ReadFile(o.NATSCreds)
		if err != nil {
			return external, err
		}
		token, err := jwt.ParseDecoratedJWT(text)
		if err != nil {
			return external, fmt.Errorf("%s contains no user JWT", o.NATSCreds)
		}
		user, err := jwt.DecodeUserClaims(token)
		if err != nil {
			return external, fmt.Errorf("%s contains no user JWT", o.NATSCreds)
		}
		if k.authority != nil && user.IssuerAccount == k.authority.Account(login.BrokerAccount) && !o.Dev {
			return operated, nil
		}
		return external, nil
	case o.NATSOptions != nil, o.NATSSeed != "", o.Dev:
		return external, nil
	default:
		return configured, nil
	}
}

// servesLogins reports whether the NATS server asks the broker to authorize logins.
func (m mode) servesLogins() bool { return m == configured || m == operated }

// credentials returns the option for NATSCreds or NATSSeed, if one is set.
func (o Options) credentials() ([]nats.Option, error) {
	switch {
	case o.NATSCreds != "":
		return []nats.Option{natslogin.Creds(o.NATSCreds)}, nil
	case o.NATSSeed != "":
		pair, err := natslogin.Seed(o.NATSSeed)
		if err != nil {
			return nil, err
		}
		public, err := pair.PublicKey()
		return []nats.Option{natslogin.Key(public, pair.Sign)}, err
	}
	return nil, nil
}

// ErrSharedKey means that the key that signs receipts would log in. A NATS server chooses what a login signs.
var ErrSharedKey = errors.New("the key that signs receipts must not log in: the NATS server could have it sign a receipt")

// apart sees to it that the broker logs in with another key than the one that signs receipts, unless the
// installation is of before and has --shared-keys.
func (k *keys) apart(o Options) error {
	if o.SharedKeys {
		o.Log.Warn("--shared-keys: keys that sign also log in. The NATS server can have them sign what it likes; rotate them, and leave the flag out")
		if o.NATS != "" {
			k.login = k.broker
		}
		return nil
	}
	file := cmp.Or(o.NATSCreds, o.NATSSeed)
	if file == "" || k.broker == nil {
		return nil
	}
	pair, err := natslogin.Seed(file)
	if err != nil {
		return err
	}
	offered, err := pair.PublicKey()
	if err != nil {
		return err
	}
	if signs, err := k.broker.PublicKey(); err != nil || signs == offered {
		return errors.Join(err, fmt.Errorf("%s: %w", file, ErrSharedKey))
	}
	return nil
}

// login returns the option by which one of the broker's own keys logs in.
func (m mode) login(k keys, o Options, account string, key nkeys.KeyPair) (nats.Option, error) {
	switch {
	case m != operated:
		public, err := key.PublicKey()
		return natslogin.Key(public, key.Sign), err
	case account == login.BrokerAccount && o.NATSCreds != "":
		return natslogin.Creds(o.NATSCreds), nil
	case account == login.SystemAccount:
		text, err := os.ReadFile(filepath.Join(o.Data, SystemJWT))
		if err != nil {
			return nil, err
		}
		token, err := jwt.ParseDecoratedJWT(bytes.TrimSpace(text))
		return natslogin.JWT(token, key.Sign), err
	default:
		return k.authority.LogIn(account, "parley "+account, key)
	}
}

// credentials returns the issuer of user JWTs for .creds files; nil if the NATS server accepts none.
func (m mode) credentials(k keys) func(performatives.Agent, performatives.Key) (string, error) {
	if m != operated && m != open {
		return nil
	}
	return func(a performatives.Agent, key performatives.Key) (string, error) {
		return k.authority.UserJWT(login.Identity{Name: a.Token(), Role: login.Principal}, string(key))
	}
}
