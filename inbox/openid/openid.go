// Package openid signs people in at an OpenID provider, by the authorization code flow with PKCE.
//
//	config, err := openid.Load("sign-in.yaml")
//	p, err := openid.New(config, "https://parley.acme.com", nil)
//	to, err := p.AuthCodeURL(ctx, state, nonce, verifier) // where the browser goes
//	account, err := p.Exchange(ctx, code, nonce, verifier) // once it is back
//	human := p.Human(account)
//
// A table of the operator's says who is who; nothing is derived from a name. The provider is looked up when
// somebody signs in, so that one that is away stops nothing else. Codes, tokens and the client's secret are
// in no error.
package openid

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/parley-asp/parley/performatives"
)

// Why nobody can be signed in. The errors that wrap them say more, for the log.
var (
	ErrUnavailable = errors.New("the OpenID provider does not answer as it should")
	ErrRefused     = errors.New("the OpenID provider refused the code")
	ErrToken       = errors.New("the ID token cannot be accepted")
	ErrUnverified  = errors.New("the OpenID provider has not verified the e-mail address")
)

// An Account is one of a provider: what a claim of its ID token says.
type Account struct{ Issuer, Claim, Value string }

// A Provider signs people in.
type Provider struct {
	config   *Config
	callback string
	client   *http.Client
	now      func() time.Time

	finding singleflight.Group
	found   atomic.Pointer[found]
}

// found is what a provider's discovery document says.
type found struct {
	provider *oidc.Provider
	oauth    oauth2.Config
}

const (
	timeout  = 5 * time.Second // of a request to the provider
	maxReply = 1 << 20         // bytes
)

// New returns the provider of a configuration from Load, for the pages below a public URL. That has to be as safe
// as the provider's: codes go there. A nil now is time.Now.
func New(c *Config, public string, now func() time.Time) (*Provider, error) {
	if !safe(public) {
		return nil, fmt.Errorf("%q is not an https URL, such as https://parley.acme.com", public)
	}
	return &Provider{config: c, callback: strings.TrimSuffix(public, "/") + "/inbox/callback", now: now, client: &http.Client{
		Timeout: timeout, Transport: bounded{http.DefaultTransport},
		// A redirect could take the code and the client's secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// bounded bounds the bytes of an answer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		reply.Body = http.MaxBytesReader(nil, reply.Body, maxReply)
	}
	return reply, err
}

// Host is the provider's host, for people.
func (p *Provider) Host() string {
	u, err := url.Parse(p.config.Issuer)
	if err != nil {
		return p.config.Issuer
	}
	return u.Host
}

// Required reports whether a device's key alone signs nobody in.
func (p *Provider) Required() bool { return p.config.Required }

// Human is whose account it is; "" is nobody's.
func (p *Provider) Human(a Account) performatives.Agent {
	if a.Issuer != p.config.Issuer || a.Claim != p.config.Claim {
		return ""
	}
	return p.config.whose[a.Value]
}

// AuthCodeURL is where a browser signs in.
func (p *Provider) AuthCodeURL(ctx context.Context, state, nonce, verifier string) (string, error) {
	found, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	return found.oauth.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// find looks the provider up, once. Those who come meanwhile wait for the same answer.
func (p *Provider) find(ctx context.Context) (*found, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	answer := p.finding.DoChan("", func() (any, error) {
		found, err := p.discover(oidc.ClientContext(context.WithoutCancel(ctx), p.client))
		if err == nil {
			p.found.Store(found)
		}
		return nil, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		return p.found.Load(), a.Err
	}
}

func (p *Provider) discover(ctx context.Context) (*found, error) {
	provider, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %.300s", ErrUnavailable, err.Error())
	}
	var says struct {
		Keys  string   `json:"jwks_uri"`
		Login []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, fmt.Errorf("%w: %.300s", ErrUnavailable, err.Error())
	}
	at := provider.Endpoint()
	for _, address := range []string{at.AuthURL, at.TokenURL, says.Keys} {
		if !safe(address) {
			return nil, fmt.Errorf("%w: its discovery document names %.300q, which is not an https URL", ErrUnavailable, address)
		}
	}
	// Said, since trying both would use the code up.
	at.AuthStyle = oauth2.AuthStyleInHeader
	if p.config.secret == "" || len(says.Login) > 0 && !slices.Contains(says.Login, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID, "profile", email}
	return &found{provider, oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.secret, Endpoint: at, RedirectURL: p.callback, Scopes: scopes}}, nil
}

// Exchange redeems a code, and returns the account that the ID token names.
func (p *Provider) Exchange(ctx context.Context, code, nonce, verifier string) (Account, error) {
	found, err := p.find(ctx)
	if err != nil {
		return Account{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := found.oauth.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Account{}, refused(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		why := ErrToken
		if strings.Contains(err.Error(), "fetching keys") { // the library has no error of its own for it
			why = ErrUnavailable
		}
		return Account{}, fmt.Errorf("%w: %.300s", why, err.Error())
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return Account{}, ErrToken
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1:
		return Account{}, fmt.Errorf("%w: it has another nonce", ErrToken)
	case len(verified.Audience) > 1 && claims["azp"] != p.config.ClientID:
		return Account{}, fmt.Errorf("%w: it is for others, too", ErrToken)
	}
	return p.account(ctx, found.provider, token, verified.Subject, claims)
}

// refused is why a code could not be redeemed. What the provider wrote stays out, but for the error's name.
func refused(err error) error {
	if answer, is := errors.AsType[*oauth2.RetrieveError](err); is {
		if answer.Response.StatusCode/100 != 4 {
			return fmt.Errorf("%w: its token endpoint answered %d", ErrUnavailable, answer.Response.StatusCode)
		}
		return fmt.Errorf("%w: %d %.60q", ErrRefused, answer.Response.StatusCode, answer.ErrorCode)
	}
	if lost, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("%w: %w", ErrUnavailable, lost)
	}
	return fmt.Errorf("%w: its token endpoint's answer cannot be read", ErrUnavailable)
}

// account reads the claim from an ID token, or from UserInfo, where a provider may have it instead (OpenID
// Connect Core 1.0, section 5.4).
func (p *Provider) account(ctx context.Context, provider *oidc.Provider, token *oauth2.Token, subject string, claims map[string]any) (Account, error) {
	if _, there := claims[p.config.Claim]; !there && safe(provider.UserInfoEndpoint()) {
		info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Account{}, fmt.Errorf("%w: its UserInfo cannot be read", ErrUnavailable)
		}
		clear(claims)
		if err := info.Claims(&claims); err != nil || subject == "" || info.Subject != subject {
			return Account{}, fmt.Errorf("%w: its UserInfo is of somebody else", ErrToken)
		}
	}
	value, _ := claims[p.config.Claim].(string)
	if value == "" || len(value) > maxValue {
		return Account{}, fmt.Errorf("%w: it has no claim %q", ErrToken, p.config.Claim)
	}
	// Some providers have the text "true".
	if yes := claims["email_verified"]; p.config.Claim == email && yes != true && yes != "true" {
		return Account{}, ErrUnverified
	}
	return Account{p.config.Issuer, p.config.Claim, value}, nil
}
