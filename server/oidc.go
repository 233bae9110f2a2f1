package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
)

// OIDC names an issuer outside whose tokens let principals in at the MCP gateway.
type OIDC struct {
	Issuer   string // its URL; "" is none
	Audience string // that its tokens must be for: the gateway's URL
	Claim    string // that names the principal; "" is sub
}

// An issuer verifies such tokens. The issuer's keys are fetched when the first one comes.
type issuer struct {
	OIDC
	client *http.Client
	known  func(performatives.Agent) (card api.Card, registered bool)

	finding  singleflight.Group
	verifier atomic.Pointer[oidc.IDTokenVerifier]
}

// issuerTimeout is how long a request to an issuer takes at most.
const issuerTimeout = 5 * time.Second

// admit finds whom a token lets in, or returns custody.ErrToken.
func (i *issuer) admit(ctx context.Context, bearer string) (custody.Pass, error) {
	verifier, err := i.verify(ctx)
	if err != nil {
		return custody.Pass{}, err
	}
	token, err := verifier.Verify(ctx, bearer)
	if err != nil {
		return custody.Pass{}, custody.ErrToken
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return custody.Pass{}, custody.ErrToken
	}
	name, _ := claims[i.Claim].(string)
	a, err := performatives.ParseAgent(name)
	if _, registered := i.known(a); err != nil || !registered {
		return custody.Pass{}, custody.ErrToken
	}
	return custody.Pass{Agent: a, Worker: "oidc", Expires: token.Expiry}, nil
}

// verify finds the issuer. Those who come meanwhile wait for the same answer.
func (i *issuer) verify(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if verifier := i.verifier.Load(); verifier != nil {
		return verifier, nil
	}
	_, err, _ := i.finding.Do("", func() (any, error) {
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.client), i.Issuer)
		if err != nil {
			return nil, err
		}
		i.verifier.Store(provider.Verifier(&oidc.Config{ClientID: i.Audience}))
		return nil, nil
	})
	return i.verifier.Load(), err
}

// admits lets in by a token of the broker's, or of the issuer's, which has the form of a JWT.
func (s *Server) admits(o OIDC) func(context.Context, string) (custody.Pass, error) {
	if o.Issuer == "" {
		return s.Custody().Admit
	}
	if o.Claim == "" {
		o.Claim = "sub"
	}
	outside := &issuer{OIDC: o, client: &http.Client{Timeout: issuerTimeout}, known: s.Card}
	return func(ctx context.Context, bearer string) (custody.Pass, error) {
		if strings.Count(bearer, ".") == 2 && strings.HasPrefix(bearer, "ey") {
			return outside.admit(ctx, bearer)
		}
		return s.Custody().Admit(ctx, bearer)
	}
}
