package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/singleflight"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
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
	now    func() time.Time
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
	var unreachable error
	token, err := verifier.Verify(context.WithValue(ctx, unreachableKey{}, &unreachable), bearer)
	if unreachable != nil {
		return custody.Pass{}, unreachable
	}
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
	return custody.Pass{Agent: a, Worker: holder(token.Subject, claims), Expires: token.Expiry}, nil
}

// holder names who holds a token of the issuer: its subject, with one client.
func holder(subject string, claims map[string]any) string {
	client := ""
	for _, claim := range []string{"azp", "client_id", "appid"} { // of OpenID Connect, RFC 9068 and Entra
		if name, _ := claims[claim].(string); client == "" {
			client = name
		}
	}
	hash := sha256.Sum256([]byte(strconv.Quote(subject) + strconv.Quote(client)))
	return "oidc-" + hex.EncodeToString(hash[:8])
}

// signingAlgs are the algorithms with a public key, of which an issuer has those that it lists, or
// else RS256.
var signingAlgs = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
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
		var found struct {
			Keys string   `json:"jwks_uri"`
			Algs []string `json:"id_token_signing_alg_values_supported"`
		}
		if err := provider.Claims(&found); err != nil {
			return nil, err
		}
		i.verifier.Store(oidc.NewVerifier(i.Issuer, newIssuerKeys(found.Keys, i.client, i.now), &oidc.Config{
			ClientID: i.Audience, SupportedSigningAlgs: slices.DeleteFunc(found.Algs, func(alg string) bool { return !slices.Contains(signingAlgs, alg) }),
		}))
		return nil, nil
	})
	return i.verifier.Load(), err
}

// Times between two fetches of an issuer's keys, whoever asks for a key that is not known.
const (
	refetchAfter = time.Minute
	retryAfter   = issuerTimeout // when they could not be fetched
	renewAfter   = time.Hour     // of those that are known
)

const mostKeys = 1 << 20 // bytes of them

var (
	errFetched     = errors.New("the issuer's keys were fetched a short time ago")
	errUnreachable = errors.New("the issuer's keys cannot be fetched")
	errNoKeys      = errors.New("the issuer names no keys")
)

// unreachableKey is where a context has room for the error that the keys cannot be fetched with:
// the verifier passes none on.
type unreachableKey struct{}

// issuerKeys are an issuer's keys. They are fetched when a token names one that is not known, but
// not for each such token, and every hour, so that one which the issuer has withdrawn goes.
type issuerKeys struct {
	transport http.RoundTripper
	now       func() time.Time
	unfetched func() *oidc.RemoteKeySet

	mu     sync.Mutex
	known  *oidc.RemoteKeySet
	renew  time.Time // when others take the place of the known ones
	next   time.Time // when they may be fetched again
	failed bool      // the last fetch
}

func newIssuerKeys(url string, client *http.Client, now func() time.Time) *issuerKeys {
	k := &issuerKeys{transport: http.DefaultTransport, now: now, renew: now().Add(renewAfter)}
	fetching := oidc.ClientContext(context.Background(), &http.Client{Timeout: client.Timeout, Transport: k})
	k.unfetched = func() *oidc.RemoteKeySet { return oidc.NewRemoteKeySet(fetching, url) }
	k.known = k.unfetched()
	return k
}

// RoundTrip fetches the keys, unless that was done a short time ago. No keys at all are a fault of the issuer's.
func (k *issuerKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil { // else it follows a redirect
		if err := k.begin(); err != nil {
			return nil, err
		}
	}
	answer, err := k.transport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostKeys))
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err == nil && json.Unmarshal(body, &set) == nil && len(set.Keys) == 0 {
		err = errNoKeys
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

func (k *issuerKeys) begin() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch now := k.now(); {
	case !now.Before(k.next):
		k.next, k.failed = now.Add(refetchAfter), false
		return nil
	case k.failed:
		return errUnreachable
	}
	return errFetched
}

// VerifySignature returns what a token says, if it is signed with one of the keys.
func (k *issuerKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	known, others := k.sets()
	if others != nil {
		payload, err := others.VerifySignature(context.WithoutCancel(ctx), token) // for those after it, too
		if !ofFetch(err) {
			k.mu.Lock()
			k.known, k.renew = others, k.now().Add(renewAfter)
			k.mu.Unlock()
			return payload, err
		}
		k.fails(ctx, err) // the known ones hold until the issuer is there again
	}
	payload, err := known.VerifySignature(ctx, token)
	if errors.Is(err, errFetched) { // maybe after this one was looked for
		payload, err = known.VerifySignature(ctx, token)
	}
	if !ofFetch(err) || errors.Is(err, errFetched) {
		return payload, err
	}
	k.fails(ctx, err)
	if to, is := ctx.Value(unreachableKey{}).(*error); is {
		*to = fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return nil, err
}

// sets are the keys that are known, and from time to time a set that is fetched for their place.
func (k *issuerKeys) sets() (known, others *oidc.RemoteKeySet) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); !now.Before(k.renew) && !now.Before(k.next) {
		others = k.unfetched()
	}
	return k.known, others
}

// ofFetch reports whether an error of a set is of fetching it: those wrap another one.
func ofFetch(err error) bool { return errors.Unwrap(err) != nil }

// fails notes that the keys could not be fetched.
func (k *issuerKeys) fails(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, errUnreachable) || errors.Is(err, errFetched) {
		return
	}
	k.mu.Lock()
	k.next, k.failed = k.now().Add(retryAfter), true
	k.mu.Unlock()
}

// admits lets in by a token of the broker's, or of the issuer's, which has the form of a JWT.
func (s *Server) admits(o OIDC) func(context.Context, string) (custody.Pass, error) {
	if o.Issuer == "" {
		return s.Broker.Custody.Admit
	}
	if o.Claim == "" {
		o.Claim = "sub"
	}
	outside := &issuer{OIDC: o, client: &http.Client{Timeout: issuerTimeout}, now: s.Broker.Options.Now, known: s.Broker.Parts.Registry.Card}
	return func(ctx context.Context, bearer string) (custody.Pass, error) {
		if strings.Count(bearer, ".") == 2 && strings.HasPrefix(bearer, "ey") {
			return outside.admit(ctx, bearer)
		}
		return s.Broker.Custody.Admit(ctx, bearer)
	}
}
