package server_test

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G6: an external issuer's tokens let a registered principal in, if they are its
// own, for this gateway, and not expired; no other path takes them.
func TestIssuer(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reply any = map[string]any{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys", "authorization_endpoint": issuer.URL, "token_endpoint": issuer.URL, "id_token_signing_alg_values_supported": []string{"RS256"}}
		if r.URL.Path == "/keys" {
			reply = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(reply) //nolint:errcheck // the test would fail
	}))
	t.Cleanup(issuer.Close)
	const audience = "https://parley.acme.com/mcp"
	w := testkit.NewHosted(t, testkit.Options{OIDC: server.OIDC{Issuer: issuer.URL, Audience: audience, Claim: "agent"}})
	token := func(change map[string]any, with *rsa.PrivateKey) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: with}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
		testkit.Must(t, err)
		claims := map[string]any{"iss": issuer.URL, "aud": audience, "sub": "u1", "agent": testkit.Cron, "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range change {
			claims[name] = value
		}
		made, err := jwt.Signed(signer).Claims(claims).Serialize()
		testkit.Must(t, err)
		return made
	}
	good := token(nil, key)
	opens := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open_session","arguments":{"with":[%q],"purpose":"cups"}}}`, testkit.Seller)
	if a := w.CallTool(good, opens); !strings.Contains(string(a.Body), `"accepted":true`) {
		t.Errorf("the issuer's token is answered %d %s", a.StatusCode, a.Body)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	for why, bad := range map[string]string{
		"another audience": token(map[string]any{"aud": "https://elsewhere.io"}, key), "expired": token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, key),
		"another issuer": token(map[string]any{"iss": "https://evil.example"}, key), "another key": token(nil, other), "no principal": token(map[string]any{"agent": "alice"}, key),
		"nobody registered": token(map[string]any{"agent": "agent://elsewhere.io/spy"}, key), "none's algorithm": unsigned(testkit.Cron, issuer.URL, audience),
	} {
		if a := w.Send("POST", "/mcp", bad, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://parley.acme.com/.well-known/oauth-protected-resource/mcp"` {
			t.Errorf("%s: answered %d %s", why, a.StatusCode, a.Header.Get("WWW-Authenticate"))
		}
	}
	// What one client, or one person's, was shown, another was not.
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[testkit.Cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, testkit.Seller)).Is(http.StatusCreated, &opened)
	id := opened.Session
	call := func(token, tool, more string) string {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"negotiationId":%q%s}}}`, tool, id, more)
		return string(w.Send("POST", "/mcp", token, message, func(r *http.Request) { r.Header.Set("Accept", "application/json, text/event-stream") }).Body)
	}
	w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[testkit.Seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
	offers := func(proposal string, price int) {
		w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[testkit.Seller], fmt.Sprintf(
			`{"performative":"PROPOSE","body":{"proposalId":%q,"type":"offer","subject":"cups","terms":{"price":%d}}}`, proposal, price)).Is(http.StatusOK, nil)
	}
	one := token(map[string]any{"azp": "assistant"}, key)
	for n, another := range []map[string]any{{"sub": "u2", "azp": "assistant"}, {"azp": "script"}, {"client_id": "script"}} {
		offers(fmt.Sprint("before-", n), 50)
		call(one, "get_negotiation", "")
		offers(fmt.Sprint("after-", n), 900)
		call(token(another, key), "get_negotiation", "")
		if said := call(one, "respond_to_negotiation", `,"action":"accept"`); !strings.Contains(said, "chain_conflict") {
			t.Errorf("with %v the answer is %s", another, said)
		}
	}
	if a := w.Send("GET", "/v1/asp/sessions", good, ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("another path takes the issuer's token: %d", a.StatusCode)
	}
	var metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	w.Send("GET", "/.well-known/oauth-protected-resource/mcp", "", "").Is(http.StatusOK, &metadata)
	if metadata.Resource != audience || len(metadata.Servers) != 1 || metadata.Servers[0] != issuer.URL {
		t.Errorf("the metadata is %+v", metadata)
	}
}

// Keys that the issuer has withdrawn go within the hour. Forged tokens have the issuer's keys fetched once a minute, however many they are; a new key is
// found after that; and while the keys cannot be fetched the answer is 503, but for known keys.
func TestIssuerKeysFetched(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	var fetched atomic.Int64
	var known atomic.Value // the kid
	var down, empty atomic.Bool
	known.Store("old")
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reply any = map[string]any{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/moved"}
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/keys", http.StatusFound)
			return
		case "/keys":
			fetched.Add(1)
			if down.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if empty.Load() {
				reply = map[string]any{"keys": []string{}}
				break
			}
			reply = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: known.Load().(string), Algorithm: "RS256", Use: "sig"}}} //nolint:forcetypeassert // it is
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(reply) //nolint:errcheck // the test would fail
	}))
	t.Cleanup(issuer.Close)
	const audience = "https://parley.acme.com/mcp"
	var clock testkit.Clock
	w := testkit.NewHosted(t, testkit.Options{OIDC: server.OIDC{Issuer: issuer.URL, Audience: audience}, Now: clock.Now})
	answers := func(kid string, want int) {
		t.Helper()
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
		testkit.Must(t, err)
		made, err := jwt.Signed(signer).Claims(map[string]any{"iss": issuer.URL, "aud": audience, "sub": testkit.Cron, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
		testkit.Must(t, err)
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, "http://"+w.HTTPAddr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		testkit.Must(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + made}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		reply, err := http.DefaultClient.Do(r) // once, also if it is answered 503
		testkit.Must(t, err)
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("a token of key %q is answered %d, want %d", kid, reply.StatusCode, want)
		}
	}
	fetches := func(want int64) {
		t.Helper()
		if n := fetched.Load(); n != want {
			t.Errorf("the keys were fetched %d times, want %d", n, want)
		}
	}
	answers("old", http.StatusOK)
	for n := range 100 {
		answers(fmt.Sprint("forged ", n), http.StatusUnauthorized)
	}
	fetches(1)
	known.Store("new")
	answers("new", http.StatusUnauthorized)
	clock.Advance(time.Minute)
	answers("new", http.StatusOK)
	fetches(2)
	clock.Advance(time.Minute)
	down.Store(true)
	for range 10 {
		answers("other", http.StatusServiceUnavailable)
	}
	answers("new", http.StatusOK)
	fetches(3)
	down.Store(false)
	known.Store("other")
	clock.Advance(5 * time.Second)
	answers("other", http.StatusOK)
	fetches(4)
	known.Store("newest") // the one before is withdrawn
	clock.Advance(30 * time.Minute)
	answers("other", http.StatusOK)
	fetches(4)
	down.Store(true)
	clock.Advance(30 * time.Minute)
	answers("other", http.StatusOK)
	answers("other", http.StatusOK)
	fetches(5)
	down.Store(false)
	empty.Store(true)
	clock.Advance(5 * time.Second)
	answers("other", http.StatusOK)
	fetches(6)
	empty.Store(false)
	clock.Advance(5 * time.Second)
	answers("other", http.StatusUnauthorized)
	answers("newest", http.StatusOK)
	fetches(7)
}

// While the issuer's keys cannot be reached, whatever the network's reason, nobody can say whether a token is
// good: the answer is 503, and a client does not throw its token away as at a 401.
func TestIssuerKeysUnreachable(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	closed := "http://" + testkit.FreeAddress(t)
	for name, keys := range map[string]string{
		"refused": closed + "/keys", "cut off": "", "no such host": "http://keys.invalid/", "the issuer itself is refused": "none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var issuer *httptest.Server
			issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/cut" {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "application/json")
				json.NewEncoder(w).Encode(map[string]any{"issuer": issuer.URL, "jwks_uri": cmp.Or(keys, issuer.URL+"/cut")}) //nolint:errcheck // the test would fail
			}))
			t.Cleanup(issuer.Close)
			of := issuer.URL
			if keys == "none" {
				of = closed
			}
			const audience = "https://parley.acme.com/mcp"
			w := testkit.NewHosted(t, testkit.Options{OIDC: server.OIDC{Issuer: of, Audience: audience}})
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
			testkit.Must(t, err)
			made, err := jwt.Signed(signer).Claims(map[string]any{"iss": of, "aud": audience, "sub": testkit.Cron, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
			testkit.Must(t, err)
			for range 2 { // the second attempt is not fetched for
				r, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, "http://"+w.HTTPAddr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				testkit.Must(t, err)
				r.Header = http.Header{"Authorization": {"Bearer " + made}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
				reply, err := http.DefaultClient.Do(r)
				testkit.Must(t, err)
				said, err := io.ReadAll(reply.Body)
				testkit.Must(t, err)
				reply.Body.Close()
				if !strings.Contains(string(said), `"unavailable: `) || strings.Contains(string(said), "invalid") {
					t.Errorf("said %s", said)
				}
				if reply.StatusCode != http.StatusServiceUnavailable || reply.Header.Get("WWW-Authenticate") != "" {
					t.Errorf("answered %d %s", reply.StatusCode, reply.Header.Get("WWW-Authenticate"))
				}
			}
		})
	}
}

// unsigned is a token with the algorithm "none".
func unsigned(a performatives.Agent, issuer, audience string) string {
	part := func(v map[string]any) string {
		data, _ := json.Marshal(v) // of texts and a number
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]any{"alg": "none"}) + "." + part(map[string]any{"iss": issuer, "aud": audience, "sub": a, "agent": a, "exp": time.Now().Add(time.Hour).Unix()}) + "."
}
