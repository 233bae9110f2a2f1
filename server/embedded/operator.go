package embedded

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server/login"
)

// addOperator configures a server in operator mode: JWTs signed by the authority's operator say
// what its accounts may do, who the broker is, and who answers logins.
func (o Options) addOperator(opts *server.Options) error {
	issuer, err := o.Authority.Issuer()
	if err != nil {
		return err
	}
	if err := (Keys{Broker: o.Broker, Callout: o.Callout, Issuer: issuer}).check(); err != nil {
		return err
	}
	operator, err := o.Authority.Operator()
	if err != nil {
		return err
	}
	if opts.DefaultSentinel, err = o.Authority.Sentinel(); err != nil {
		return err
	}
	resolver := &server.MemAccResolver{}
	for _, name := range login.Accounts {
		text, err := accountJWT(o.Authority, name, o.Callout, production(o.Shards), true)
		if err != nil {
			return err
		}
		if err := resolver.Store(o.Authority.Account(name), text); err != nil {
			return err
		}
	}
	opts.TrustedOperators, opts.AccountResolver = []*jwt.OperatorClaims{operator}, resolver
	return nil
}

// accountJWT returns the JWT of an account with its rows of what accounts import. It is signed by the
// authority's operator, or by the account itself for another operator to sign.
func accountJWT(authority *login.Authority, name, callout string, all []access, operator bool) (string, error) {
	issuer, err := authority.Issuer()
	if err != nil {
		return "", err
	}
	claims := jwt.NewAccountClaims(authority.Account(name))
	claims.Name = name
	if name != login.SystemAccount {
		claims.SigningKeys.Add(issuer)
	}
	switch name {
	case login.BrokerAccount:
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
			MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: maxConsumers,
			MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
		}
		for _, e := range exports(all) { // each needs an activation
			claims.Exports.Add(e.claim())
		}
		token, err := authority.Activation(wakeups.Account, name, wakeups.Subject, jwt.Service)
		if err != nil {
			return "", err
		}
		claims.Imports.Add(&jwt.Import{
			Name: wakeups.Subject, Subject: jwt.Subject(wakeups.Subject), Account: authority.Account(wakeups.Account), Token: token,
			LocalSubject: jwt.RenamingSubject(wakeups.Local), Type: jwt.Service,
		})
		if !operator { // for external servers; the embedded server has one broker only
			claims.AddMapping(api.AllSubmits, jwt.WeightedMapping{Subject: api.RouteMapping})
		}
	case login.CalloutAccount:
		claims.Authorization.AuthUsers.Add(callout)
		claims.Authorization.AllowedAccounts.Add(authority.Account(login.BrokerAccount)) // for logins with the broker's key
		for _, may := range all {
			claims.Authorization.AllowedAccounts.Add(authority.Account(may.Account))
		}
	}
	if name == wakeups.Account {
		claims.Exports.Add(&jwt.Export{Name: wakeups.Subject, Subject: jwt.Subject(wakeups.Subject), Type: jwt.Service, TokenReq: true})
	}
	for _, may := range all {
		if may.Account != name {
			continue
		}
		claims.Limits.Subs = maxSubscriptions // of each connection
		if claims.Imports, err = may.imports(authority); err != nil {
			return "", err
		}
	}
	return authority.SignAccount(claims, operator)
}

var jwtResponses = map[server.ServiceRespType]jwt.ResponseType{
	server.Singleton: jwt.ResponseTypeSingleton, server.Streamed: jwt.ResponseTypeStream, server.Chunked: jwt.ResponseTypeChunked,
}

func (e *export) claim() *jwt.Export {
	claim := &jwt.Export{Name: e.Subject, Subject: jwt.Subject(e.Subject), Type: jwt.Stream, TokenReq: true}
	if !e.Stream {
		claim.Type, claim.ResponseType = jwt.Service, jwtResponses[e.Answers]
	}
	return claim
}

func (a access) imports(authority *login.Authority) (all jwt.Imports, err error) {
	add := func(subject string, kind jwt.ExportType) {
		token, failed := authority.Activation(login.BrokerAccount, a.Account, subject, kind)
		if failed != nil && err == nil {
			err = fmt.Errorf("account %s: %w", a.Account, failed)
		}
		all.Add(&jwt.Import{
			Name: subject, Subject: jwt.Subject(subject), Account: authority.Account(login.BrokerAccount), Token: token, Type: kind,
		})
	}
	for _, s := range a.Services {
		add(s.Subject, jwt.Service)
	}
	for _, subject := range a.Streams {
		add(subject, jwt.Stream)
	}
	return all, err
}
