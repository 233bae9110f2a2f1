package login

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// An Authority holds the keys of a server in operator mode: those of its operator and of its
// accounts, and of the user that a login is until the callout has answered it. All of them are
// made from one seed, the issuer's, so that there is one file to keep; and the issuer, a signing
// key of every account, signs what is signed from day to day. Whoever has that seed lets anybody
// in, in operator mode and without.
type Authority struct {
	issuer   nkeys.KeyPair
	operator nkeys.KeyPair
	sentinel string
	accounts map[string]nkeys.KeyPair
	public   map[string]string
}

// Accounts are the names of all of a server's accounts.
var Accounts = []string{SystemAccount, BrokerAccount, PrincipalsAccount, OperatorsAccount, CalloutAccount}

// NewAuthority makes the keys from the issuer's, an account key with its seed.
func NewAuthority(issuer nkeys.KeyPair) (*Authority, error) {
	text, err := issuer.Seed()
	if err != nil {
		return nil, fmt.Errorf("login: issuer: %w", err)
	}
	kind, seed, err := nkeys.DecodeSeed(text)
	if err != nil || kind != nkeys.PrefixByteAccount {
		return nil, errors.New("login: the issuer must be an account key")
	}
	a := &Authority{issuer: issuer, accounts: map[string]nkeys.KeyPair{}, public: map[string]string{}}
	key := func(kind nkeys.PrefixByte, what string) (pair nkeys.KeyPair, public string) {
		raw, derived := hkdf.Key(sha256.New, seed, nil, "parley "+what, len(seed))
		if err = errors.Join(err, derived); err != nil {
			return nil, ""
		}
		var made, named error
		if pair, made = nkeys.FromRawSeed(kind, raw); made == nil {
			public, named = pair.PublicKey()
		}
		err = errors.Join(err, made, named)
		return pair, public
	}
	a.operator, _ = key(nkeys.PrefixByteOperator, "operator")
	_, a.sentinel = key(nkeys.PrefixByteUser, "sentinel")
	for _, name := range Accounts {
		a.accounts[name], a.public[name] = key(nkeys.PrefixByteAccount, "account "+name)
	}
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return a, nil
}

// Account is the public key ("A…") that is an account's name in operator mode.
func (a *Authority) Account(name string) string { return a.public[name] }

// Issuer is the public key ("A…") that signs logins, and all that the others are not needed for.
func (a *Authority) Issuer() (string, error) { return a.issuer.PublicKey() }

// Operator is the operator's JWT.
func (a *Authority) Operator() (*jwt.OperatorClaims, error) {
	public, err := a.operator.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	claims := jwt.NewOperatorClaims(public)
	claims.Name, claims.SystemAccount = "parley", a.public[SystemAccount]
	text, err := claims.Encode(a.operator)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return jwt.DecodeOperatorClaims(text)
}

// SignAccount signs what an account is: as the operator, or as the account itself, for an
// operator elsewhere to sign anew.
func (a *Authority) SignAccount(claims *jwt.AccountClaims, operator bool) (string, error) {
	by := a.accounts[claims.Name]
	if operator {
		by = a.operator
	}
	text, err := claims.Encode(by)
	if err != nil {
		return "", fmt.Errorf("login: account %s: %w", claims.Name, err)
	}
	return text, nil
}

// Activation is a JWT that lets an account import what ASP exports to nobody else.
func (a *Authority) Activation(to, subject string, kind jwt.ExportType) (string, error) {
	claims := jwt.NewActivationClaims(a.public[to])
	claims.Name = subject
	claims.ImportSubject, claims.ImportType = jwt.Subject(subject), kind
	claims.IssuerAccount = a.public[BrokerAccount]
	text, err := claims.Encode(a.issuer)
	if err != nil {
		return "", fmt.Errorf("login: import of %s: %w", subject, err)
	}
	return text, nil
}

// Own is the user JWT of one of parley's own keys, the one user of its account.
func (a *Authority) Own(account, name, key string) (string, error) {
	claims := jwt.NewUserClaims(key)
	claims.Name = name
	return a.sign(account, claims)
}

// LogIn logs in to a server in operator mode with one of parley's own keys.
func (a *Authority) LogIn(account, name string, key nkeys.KeyPair) (nats.Option, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	own, err := a.Own(account, name, public)
	return nats.UserJWT(func() (string, error) { return own, nil }, key.Sign), err
}

// Sentinel is the bearer JWT that a login without a JWT of its own is taken to have come with,
// so that the server asks the callout about it. It may do nothing.
func (a *Authority) Sentinel() (string, error) {
	claims := jwt.NewUserClaims(a.sentinel)
	claims.Name, claims.BearerToken = "sentinel", true
	claims.Permissions = nothing()
	return a.sign(CalloutAccount, claims)
}

// nothing may be published and heard.
func nothing() (may jwt.Permissions) {
	may.Pub.Deny, may.Sub.Deny = jwt.StringList{">"}, jwt.StringList{">"}
	return may
}

func (a *Authority) sign(account string, claims *jwt.UserClaims) (string, error) {
	claims.IssuerAccount = a.public[account]
	text, err := claims.Encode(a.issuer)
	if err != nil {
		return "", fmt.Errorf("login: user of %s: %w", account, err)
	}
	return text, nil
}
