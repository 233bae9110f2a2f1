package login

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/internal/natslogin"
)

// An Authority holds the keys of a server in operator mode: those of its operator, its accounts
// and the sentinel, the user of a login until the callout has answered. All are derived from one
// seed, the issuer's, so there is one file to keep. The issuer is a signing key of every account
// and signs everything from day to day. Whoever has its seed can let anybody in, in both modes.
type Authority struct {
	issuer   nkeys.KeyPair
	operator nkeys.KeyPair
	sentinel string
	accounts map[string]nkeys.KeyPair
	public   map[string]string
}

// Accounts are the names of all accounts of a server.
var Accounts = []string{SystemAccount, BrokerAccount, PrincipalsAccount, OperatorsAccount, CalloutAccount}

// NewAuthority derives the keys from the issuer's, which must be an account key with its seed.
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

// Account is the public key ("A…") of an account, which is its name in operator mode.
func (a *Authority) Account(name string) string { return a.public[name] }

// Issuer is the public key ("A…") that signs logins, users and activations.
func (a *Authority) Issuer() (string, error) { return a.issuer.PublicKey() }

// Operator returns the operator's JWT.
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

// SignAccount signs the claims of an account, as the operator or as the account itself. In the
// latter case an external operator has to sign them again.
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

// Activation returns the JWT with which one account may import a subject from another.
func (a *Authority) Activation(from, to, subject string, kind jwt.ExportType) (string, error) {
	claims := jwt.NewActivationClaims(a.public[to])
	claims.Name = subject
	claims.ImportSubject, claims.ImportType = jwt.Subject(subject), kind
	claims.IssuerAccount = a.public[from]
	text, err := claims.Encode(a.issuer)
	if err != nil {
		return "", fmt.Errorf("login: import of %s: %w", subject, err)
	}
	return text, nil
}

// Own returns the user JWT of one of parley's own keys, the only user of its account.
func (a *Authority) Own(account, name, key string) (string, error) {
	claims := jwt.NewUserClaims(key)
	claims.Name = name
	return a.sign(account, claims)
}

// LogIn returns the option that logs in to a server in operator mode with one of parley's own
// keys.
func (a *Authority) LogIn(account, name string, key nkeys.KeyPair) (nats.Option, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	own, err := a.Own(account, name, public)
	return natslogin.JWT(own, key.Sign), err
}

// Sentinel returns the bearer JWT that the server assumes of logins without a JWT, so that it
// asks the callout about them. It grants nothing.
func (a *Authority) Sentinel() (string, error) {
	claims := jwt.NewUserClaims(a.sentinel)
	claims.Name, claims.BearerToken = "sentinel", true
	claims.Permissions = nothing()
	return a.sign(CalloutAccount, claims)
}

// nothing denies all publishing and subscribing.
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
