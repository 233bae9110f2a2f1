package mcpgateway

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
)

// metadata says who issues tokens for the gateway (RFC 9728): the configured issuer, or the
// installation, which exchanges the tokens of 'parley token add'.
func (h *handler) metadata(w http.ResponseWriter, r *http.Request) {
	m := &oauthex.ProtectedResourceMetadata{
		Resource: h.resource(r), ResourceName: "parley", BearerMethodsSupported: []string{"header"},
		AuthorizationServers: []string{h.o.Issuer},
	}
	if h.o.Issuer == "" {
		m.AuthorizationServers = []string{h.base(r)}
	}
	auth.ProtectedResourceMetadataHandler(m).ServeHTTP(w, r)
}

// issuer describes the installation as an authorization server (RFC 8414). Its operator
// makes the credentials, so it has no page on which users authorize clients.
func (h *handler) issuer(w http.ResponseWriter, r *http.Request) {
	base := h.base(r)
	h.json(w, http.StatusOK, object{
		"issuer": base, "token_endpoint": base + TokenPath,
		"grant_types_supported": []string{"client_credentials"}, "response_types_supported": []string{},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
	})
}

// maxForm bounds a request for a token.
const maxForm = 8 << 10 // bytes

// token answers who has a token of the broker by that token (RFC 6749, section 4.4): its
// client_id is the token's id, its client_secret the token.
func (h *handler) token(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.json(w, http.StatusBadRequest, object{"error": "invalid_request", "error_description": "the form cannot be read"})
		return
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		h.json(w, http.StatusBadRequest, object{"error": "unsupported_grant_type", "error_description": "grant_type is client_credentials"})
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	caller, err := h.o.Service.Admit(r.Context(), secret)
	switch {
	case errors.Is(err, custody.ErrToken), err == nil && caller.Worker != id:
		w.Header().Set("WWW-Authenticate", "Basic")
		h.json(w, http.StatusUnauthorized, object{"error": "invalid_client", "error_description": "client_id is the id of a token of 'parley token add', and client_secret the token"})
		return
	case err != nil:
		refusal := h.o.Service.Refusal(err)
		w.Header().Set("Retry-After", gateway.RetryAfter(refusal))
		h.json(w, refusal.Code.Status(), object{"error": "temporarily_unavailable", "error_description": refusal.Message})
		return
	}
	answer := object{"access_token": secret, "token_type": "Bearer"}
	if !caller.Expires.IsZero() {
		answer["expires_in"] = int64(max(0, time.Until(caller.Expires).Seconds()))
	}
	h.json(w, http.StatusOK, answer)
}

func (h *handler) json(w http.ResponseWriter, status int, answer object) {
	data, err := json.Marshal(answer, json.Deterministic(true))
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
