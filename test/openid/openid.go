// Package openid runs an OpenID provider that tests sign in at: zitadel/oidc's, with its storage in memory, and a
// front before it that can be made to lie, to be slow, and to be away.
//
//	p := openid.Start(t, "https://parley.acme.com/inbox/callback")
//	p.Account("u1", "alice@acme.com", true)
//	p.Lies(func(claims map[string]any) { claims["nonce"] = "another" })
//
// Its login page asks for nothing but a button: whoever presses it is the account that was added last.
package openid

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client that is registered, and the account's password.
const (
	ClientID = "parley"
	Secret   = "a-secret-that-nobody-logs"
	password = "correct horse"
)

// A Provider is one that runs until the test ends.
type Provider struct {
	*storage.Storage
	URL string

	testing.TB
	key *rsa.PrivateKey

	mu    sync.Mutex
	user  *storage.User
	gave  []string // codes and tokens
	claim bool     // ID tokens have the claims, and not UserInfo alone
	lie   func(claims map[string]any)
	forge *rsa.PrivateKey // signs what the lie has changed
	none  bool            // nothing signs it
	front func(http.ResponseWriter, *http.Request) bool
}

// Start starts a provider that sends people back to a redirect URI.
func Start(t testing.TB, callback string) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p := &Provider{TB: t, key: key}
	p.Storage = storage.NewStorageWithClients(p, map[string]*storage.Client{ClientID: storage.WebClient(ClientID, Secret, callback)})
	mux := http.NewServeMux()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		front := p.front
		p.mu.Unlock()
		if front == nil || !front(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1) // another site than the pages'
	provider, err := op.NewProvider(&op.Config{CryptoKey: [32]byte{1}, CodeMethodS256: true}, p, op.StaticIssuer(p.URL), op.WithAllowInsecure())
	must(t, err)
	mux.HandleFunc("GET /login/username", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!doctype html><title>Login</title><form method="post"><button id="allow">Sign in</button></form>`)) //nolint:errcheck // the test would fail
	})
	mux.HandleFunc("POST /login/username", func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("authRequestID")
		if err := p.CheckUsernamePassword(p.GetUserByID("").Username, password, id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(provider)(op.ContextWithIssuer(r.Context(), p.URL), id), http.StatusSeeOther)
	})
	mux.HandleFunc("/oauth/token", func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		provider.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		w.Write(p.answered(r, answer)) //nolint:errcheck // the test would fail
	})
	mux.Handle("/", provider)
	return p
}

// Front is a reverse proxy at an address that is known before the broker's, to which behind leads it.
func Front(t testing.TB) (url string, behind func(address string)) {
	var broker atomic.Value
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", broker.Load().(string) //nolint:forcetypeassert // it is
	}})
	t.Cleanup(server.Close)
	return server.URL, func(address string) { broker.Store(address) }
}

// Config writes a configuration of the pages with more settings, and returns its path.
func (p *Provider) Config(settings string) string {
	p.Helper()
	dir := p.TempDir()
	must(p, os.WriteFile(filepath.Join(dir, "client.secret"), []byte(Secret+"\n"), 0o600))
	path := filepath.Join(dir, "sign-in.yaml")
	must(p, os.WriteFile(path, []byte("issuer: "+p.URL+"\nclientId: "+ClientID+"\nclientSecretFile: client.secret\n"+settings), 0o600))
	return path
}

// Account is the account that signs in from now on.
func (p *Provider) Account(id, email string, verified bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = &storage.User{ID: id, Username: id, Password: password, Email: email, EmailVerified: verified}
}

// ClaimsInToken has ID tokens say what otherwise only UserInfo says.
func (p *Provider) ClaimsInToken() { p.mu.Lock(); p.claim = true; p.mu.Unlock() }

// Lies changes the claims of ID tokens; nil no longer does.
func (p *Provider) Lies(lie func(claims map[string]any)) { p.Forges(lie, nil) }

// Forges changes them, and signs with another key.
func (p *Provider) Forges(lie func(claims map[string]any), key *rsa.PrivateKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lie, p.forge, p.none = lie, key, false
}

// Unsigned gives ID tokens of the algorithm none.
func (p *Provider) Unsigned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lie, p.none = func(map[string]any) {}, true
}

// Front answers requests before the provider does, if it reports true; nil answers none.
func (p *Provider) Front(answers func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.front = answers
}

// Gave are the codes that were redeemed, and the tokens that were given.
func (p *Provider) Gave() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{Secret}, p.gave...)
}

// answered is the token endpoint's answer, with the lie in it.
func (p *Provider) answered(r *http.Request, answer *httptest.ResponseRecorder) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gave = append(p.gave, r.FormValue("code"), r.FormValue("code_verifier"))
	tokens := map[string]any{}
	if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &tokens) != nil {
		return answer.Body.Bytes()
	}
	for _, name := range []string{"access_token", "id_token"} {
		token, _ := tokens[name].(string)
		p.gave = append(p.gave, token)
	}
	if p.lie == nil {
		return answer.Body.Bytes()
	}
	token, _ := tokens["id_token"].(string)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	must(p, err)
	claims := map[string]any{}
	numbers := json.NewDecoder(bytes.NewReader(payload))
	numbers.UseNumber()
	must(p, numbers.Decode(&claims))
	p.lie(claims)
	if payload, err = json.Marshal(claims); err != nil {
		p.Error(err)
	}
	tokens["id_token"] = p.sign(payload)
	changed, err := json.Marshal(tokens)
	must(p, err)
	return changed
}

func (p *Provider) sign(payload []byte) string {
	if p.none {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: cmp.Or(p.forge, p.key)}, (&jose.SignerOptions{}).WithHeader("kid", keyID))
	must(p, err)
	signed, err := signer.Sign(payload)
	must(p, err)
	token, err := signed.CompactSerialize()
	must(p, err)
	return token
}

// GetUserByID returns the account, whatever the id. With the next two, it makes p a storage.UserStore.
func (p *Provider) GetUserByID(string) *storage.User {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user
}

// GetUserByUsername returns it, too.
func (p *Provider) GetUserByUsername(string) *storage.User { return p.GetUserByID("") }

// ExampleClientID is for a part of the storage that is not used.
func (p *Provider) ExampleClientID() string { return storage.ServiceUserID }

// GetClientByClientID returns the client. With the next two, it takes the place of the storage's.
func (p *Provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return client{c, p.claim}, err
}

// SigningKey is a key that the provider's lies can be signed with.
func (p *Provider) SigningKey(context.Context) (op.SigningKey, error) { return private{p.key}, nil }

// KeySet is its public half.
func (p *Provider) KeySet(context.Context) ([]op.Key, error) { return []op.Key{public{p.key}}, nil }

// A client is the storage's, which may have the claims in its ID tokens.
type client struct {
	op.Client
	claims bool
}

func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.claims }

const keyID = "k"

type private struct{ key *rsa.PrivateKey }

func (k private) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k private) Key() any                                    { return k.key }
func (k private) ID() string                                  { return keyID }

type public struct{ key *rsa.PrivateKey }

func (k public) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k public) Use() string                        { return "sig" }
func (k public) Key() any                           { return k.key.Public() }
func (k public) ID() string                         { return keyID }

// Huge answers with 10 MB.
func Huge(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(10<<20))
	w.Write(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 10<<20-6)...)) //nolint:errcheck // the client may leave
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

var (
	_ op.Storage        = (*Provider)(nil)
	_ storage.UserStore = (*Provider)(nil)
)
