package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
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
	w := newHTTPWorld(t, testkit.Options{OIDC: server.OIDC{Issuer: issuer.URL, Audience: audience, Claim: "agent"}})
	token := func(change map[string]any, with *rsa.PrivateKey) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: with}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
		testkit.Must(t, err)
		claims := map[string]any{"iss": issuer.URL, "aud": audience, "sub": "u1", "agent": cron, "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range change {
			claims[name] = value
		}
		made, err := jwt.Signed(signer).Claims(claims).Serialize()
		testkit.Must(t, err)
		return made
	}
	good := token(nil, key)
	buyer := w.assistant(good)
	var opened heard
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "cups"}, &opened)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	for why, bad := range map[string]string{
		"another audience": token(map[string]any{"aud": "https://elsewhere.io"}, key), "expired": token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, key),
		"another issuer": token(map[string]any{"iss": "https://evil.example"}, key), "another key": token(nil, other), "no principal": token(map[string]any{"agent": "alice"}, key),
		"nobody registered": token(map[string]any{"agent": "agent://elsewhere.io/spy"}, key), "none's algorithm": unsigned(cron, issuer.URL, audience),
	} {
		if a := w.send("POST", "/mcp", bad, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://parley.acme.com/.well-known/oauth-protected-resource/mcp"` {
			t.Errorf("%s: answered %d %s", why, a.status, a.header.Get("WWW-Authenticate"))
		}
	}
	if a := w.send("GET", "/v1/asp/sessions", good, ""); a.status != http.StatusUnauthorized {
		t.Errorf("another path takes the issuer's token: %d", a.status)
	}
	var metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	w.send("GET", "/.well-known/oauth-protected-resource/mcp", "", "").is(http.StatusOK, &metadata)
	if metadata.Resource != audience || len(metadata.Servers) != 1 || metadata.Servers[0] != issuer.URL {
		t.Errorf("the metadata is %+v", metadata)
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
