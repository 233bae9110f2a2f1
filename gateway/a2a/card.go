package a2agateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the extension's document
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Paths below an agent's own.
const (
	CardPath = ".well-known/agent-card.json"
	KeysPath = ".well-known/jwks.json"
)

// DocumentPath is where the extension's document is served.
const DocumentPath = "/asp/v0.1"

// document is the extension by which sessions are held.
//
//go:embed asp/v0.1.md
var document string

// Document serves what the extension says.
func Document(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(document))
}

// object is JSON in the making. Cards are written as objects, in the JSON of A2A's proto
// definition, because that is what is signed.
type object = map[string]any

// wellKnown serves what everybody may read of an agent.
func (g *Gateway) wellKnown(w http.ResponseWriter, r *http.Request, path string, card api.Card) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		fail(w, http.StatusMethodNotAllowed, "UNIMPLEMENTED", "the path takes GET")
		return
	}
	signer, err := g.o.Service.Custody.Signer(r.Context(), card.Agent)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "UNAVAILABLE", "try again")
		return
	}
	switch {
	case path == CardPath:
		if !g.reachedAtOwn(r) {
			signer = nil // nobody has the key vouch for a host of its choice
		}
		data, err := signedCard(card, g.base(r)+Base+card.Agent.Token(), g.o.Version, signer)
		if err != nil {
			fail(w, http.StatusInternalServerError, "INTERNAL", "internal error")
			return
		}
		digest := sha256.Sum256(data)
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("ETag", `"`+hex.EncodeToString(digest[:16])+`"`)
		if at, err := time.Parse(time.RFC3339, cmp.Or(card.Registry.UpdatedAt, card.Registry.RegisteredAt)); err == nil {
			w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	case path == KeysPath && signer != nil:
		write(w, http.StatusOK, object{"keys": []object{jwk(signer.Key())}})
	default:
		fail(w, http.StatusNotFound, "NOT_FOUND", "there is no such path")
	}
}

// base is the URL at which others reach HTTP.
func (g *Gateway) base(r *http.Request) string {
	if g.o.URL != "" {
		return strings.TrimSuffix(g.o.URL, "/")
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// reachedAtOwn reports whether base is this broker's own, and not just what a request says: it
// was configured, or it is loopback and where the connection came in.
func (g *Gateway) reachedAtOwn(r *http.Request) bool {
	if g.o.URL != "" {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	host, port, err := net.SplitHostPort(r.Host)
	return err == nil && local != nil && local.IP.IsLoopback() && port == strconv.Itoa(local.Port) && (host == "localhost" || local.IP.Equal(net.ParseIP(host)))
}

// Media types of parts.
const (
	textType     = "text/plain"
	jsonType     = "application/json"
	envelopeType = "application/asp+json"
)

// agentCard is an agent's card as A2A v1.0 has it.
func agentCard(card api.Card, url, version string) object {
	modes := []string{textType, jsonType, envelopeType}
	skills := []object{}
	for _, s := range card.Skills {
		skills = append(skills, object{
			"id": s.ID, "name": s.Name, "description": cmp.Or(s.Description, s.Name), "tags": append([]string{}, s.Tags...),
			"inputModes": append([]string{}, s.InputModes...), "outputModes": append([]string{}, s.OutputModes...),
		})
	}
	if len(skills) == 0 {
		skills = append(skills, object{
			"id": "negotiate", "name": "Negotiate", "description": "Agrees on terms in a signed session of the Agent Session Protocol.",
			"tags": append([]string{"negotiation"}, card.Capabilities...),
		})
	}
	bindings := []object{}
	for _, b := range []struct{ url, binding, version string }{
		{url + "/", string(a2a.TransportProtocolJSONRPC), string(a2a.Version)}, {url, string(a2a.TransportProtocolHTTPJSON), string(a2a.Version)},
		{url + "/", string(a2a.TransportProtocolJSONRPC), "0.3"},
	} {
		bindings = append(bindings, object{"url": b.url, "protocolBinding": b.binding, "protocolVersion": b.version})
	}
	host := string(card.Agent.Organisation())
	return object{
		"name": cmp.Or(card.Name, string(card.Agent)), "description": cmp.Or(card.Description, "Negotiates for "+host+" as "+string(card.Agent)+"."),
		"version": version, "provider": object{"organization": cmp.Or(card.Organization, host), "url": "https://" + host},
		"supportedInterfaces": bindings, "defaultInputModes": modes, "defaultOutputModes": modes, "skills": skills,
		"capabilities": object{"streaming": true, "pushNotifications": true, "extensions": []object{{
			"uri": Extension, "description": "A context is a session of the Agent Session Protocol; signed envelopes travel in data parts.",
			"params": object{"agentId": string(card.Agent), "envelope": envelopeType},
		}}},
		"securitySchemes": object{"bearer": object{"httpAuthSecurityScheme": object{"scheme": "Bearer", "description": "A token of the caller's principal ('parley token add')."}}},
	}
}

// signedCard is the card with its signature (A2A §8.4), and beside that what clients of 0.3
// read. Verifiers of 1.0 leave that out, as it is no member of theirs. A second signature is of all that is there,
// for verifiers that take it as it comes.
func signedCard(card api.Card, url, version string, signer performatives.Signer) ([]byte, error) {
	whole := agentCard(card, url, version)
	var signatures []object
	signs := func(card any) error {
		if signer == nil {
			return nil
		}
		signature, err := signCard(card, url+"/"+KeysPath, signer)
		signatures = append(signatures, signature)
		return err
	}
	if err := signs(filled(whole)); err != nil {
		return nil, err
	}
	whole["protocolVersion"], whole["url"], whole["preferredTransport"] = "0.3.0", url+"/", string(a2a.TransportProtocolJSONRPC)
	whole["additionalInterfaces"] = []object{{"url": url + "/", "transport": string(a2a.TransportProtocolJSONRPC)}}
	// Clients of 1.0 differ on how securityRequirements are written; those in Python read this instead.
	whole["security"] = []object{{"bearer": []string{}}}
	bearer := whole["securitySchemes"].(object)["bearer"].(object) //nolint:errcheck,forcetypeassert // made above
	inner := bearer["httpAuthSecurityScheme"].(object)             //nolint:errcheck,forcetypeassert // made above
	bearer["type"], bearer["scheme"], bearer["description"] = "http", inner["scheme"], inner["description"]
	if err := signs(whole); err != nil {
		return nil, err
	}
	if len(signatures) > 0 {
		whole["signatures"] = signatures
	}
	return json.Marshal(whole, json.Deterministic(true))
}

// signCard signs a card: JWS over its canonical JSON.
func signCard(card any, keys string, signer performatives.Signer) (object, error) {
	data, err := json.Marshal(card, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	payload, err := performatives.Canonical(data)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(object{"alg": "EdDSA", "typ": "JOSE", "kid": string(signer.Key()), "jku": keys}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	protected := base64.RawURLEncoding.EncodeToString(header)
	signature, err := signer.Sign([]byte(protected + "." + base64.RawURLEncoding.EncodeToString(payload)))
	return object{"protected": protected, "signature": base64.RawURLEncoding.EncodeToString(signature)}, err
}

// filled is a value without empty texts, lists and objects, as the canonical form of a card
// has none; nil is nothing.
func filled(value any) any {
	switch v := value.(type) {
	case object:
		kept := object{}
		for name, member := range v {
			if m := filled(member); m != nil {
				kept[name] = m
			}
		}
		if len(kept) > 0 {
			return kept
		}
	case []any:
		return filledList(v)
	case []object:
		return filledList(v)
	case []string:
		return filledList(v)
	case string:
		if v != "" {
			return v
		}
	default:
		return v
	}
	return nil
}

// filledList is a list without what is empty; nil is an empty one.
func filledList[E any](list []E) any {
	var kept []any
	for _, member := range list {
		if m := filled(member); m != nil {
			kept = append(kept, m)
		}
	}
	if kept == nil {
		return nil
	}
	return kept
}

// jwk is a key as JSON Web Keys have it.
func jwk(k performatives.Key) object {
	return object{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": string(k), "x": base64.RawURLEncoding.EncodeToString(k.Public())}
}
