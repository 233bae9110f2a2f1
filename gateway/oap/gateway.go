// Package oapgateway serves the paths by which parties negotiate as OAP's RFC-0002 has it
// (docs/AGREEMENTS.md).
//
//	oap := oapgateway.New(oapgateway.Options{Service: service, Key: b.Key()})
//	mux.Handle(oapgateway.Base, oap)
//	mux.Handle("GET "+oapgateway.ManifestPath, oap)
//
// A negotiation is a session in binding/1. A party is an agent that has a key of its own and
// is hosted: with its own key it signs proposals and agreements, and with the hosted one the
// installation signs the acts that they become. What the party signed rides in the act's
// content.context. No rule lives here: the mode judges the signatures, the ids and the rounds.
package oapgateway

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// Base is the path that all routes but the manifest's begin with.
const Base = "/oap/"

// Options say what is served.
type Options struct {
	Service *gateway.Service
	// Party reports whether an agent is a party of OAP's: it has a key of its own and is hosted.
	Party   func(performatives.Agent) bool
	AgentOf func(did string) (performatives.Agent, bool) // who has registered a DID
	Key     performatives.Key                            // of the broker, whose did:key the manifest names
}

// A Gateway serves requests below Base, and the manifest.
type Gateway struct {
	o   Options
	mux *http.ServeMux
}

// New makes a gateway.
func New(o Options) *Gateway {
	g := &Gateway{o: o, mux: http.NewServeMux()}
	const negotiation = Base + "negotiation/"
	for path, do := range map[string]func(*call) (int, any, error){
		"POST " + negotiation + "open":                 (*call).open,
		"POST " + negotiation + "{id}/propose":         (*call).propose,
		"POST " + negotiation + "{id}/accept":          (*call).accept,
		"POST " + negotiation + "{id}/sign":            (*call).sign,
		"POST " + negotiation + "{id}/reject":          (*call).reject,
		"POST " + negotiation + "{id}/withdraw":        (*call).withdraw,
		"GET " + negotiation + "{id}":                  (*call).state,
		"GET " + negotiation + "{id}/draft/{proposal}": (*call).draft,
	} {
		g.mux.HandleFunc(path, g.serve(do))
	}
	g.mux.HandleFunc("GET "+ManifestPath, g.manifest)
	g.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, notFound, "there is no such path")
	})
	return g
}

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	g.mux.ServeHTTP(w, r)
}

// A call is one request.
type call struct {
	gateway.Caller

	g *Gateway
	w http.ResponseWriter
	r *http.Request
}

// serve authenticates a request and answers it.
func (g *Gateway) serve(do func(*call) (status int, reply any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{g: g, w: w, r: r}
		var err error
		if c.Caller, err = g.o.Service.AdmitHTTP(r); err == nil && r.Method != http.MethodGet {
			err = c.Acts()
		}
		var status int
		var reply any
		if err == nil {
			status, reply, err = do(c)
		}
		if err != nil {
			g.refuse(w, err)
			return
		}
		write(w, status, reply)
	}
}

// read reads the body as a document of OAP's, in canonical form.
func (c *call) read() (document jsontext.Value, d agreement.OAPDocument, err error) {
	data, err := c.ReadBody(c.w, c.r)
	_, refused := errors.AsType[*session.Refusal](err)
	switch {
	case refused:
		return nil, d, err
	case err != nil:
		return nil, d, bad("the body ends early")
	case len(data) == 0:
		data = []byte("{}")
	}
	if document, err = performatives.Canonical(data); err == nil {
		d, err = agreement.ReadOAP(document)
	}
	if err != nil {
		return nil, d, bad("%s", err)
	}
	return document, d, nil
}

// bad refuses a body.
func bad(format string, args ...any) error {
	return session.Refuse(session.MalformedEnvelope, format, args...)
}

// OAP's error codes (OAP-CORE-1.0, appendix B).
const (
	invalidInput       = "invalid_input"
	authRequired       = "auth_required"
	policyBlock        = "policy_block"
	notFound           = "not_found"
	conflict           = "conflict"
	preconditionFailed = "precondition_failed"
	rateLimited        = "rate_limited"
	internalError      = "internal_error"
	maintenance        = "maintenance"
)

// oapCode is what a refusal is to OAP.
func oapCode(refusal *session.Refusal) (status int, code string) {
	switch refusal.Code {
	case session.TooLarge:
		return http.StatusRequestEntityTooLarge, invalidInput
	case session.SignatureInvalid:
		return http.StatusUnauthorized, authRequired
	case session.Unauthorized, session.AuthorityExceeded, session.OwnProposal, session.InsufficientTrust:
		return http.StatusForbidden, policyBlock
	case session.UnknownSession, session.UnknownAgent:
		return http.StatusNotFound, notFound
	case session.WrongState, session.WrongTurn, session.Duplicate, session.ChainConflict, session.ProposalUnknown, session.ProposalNotOpen,
		session.ClarificationPending, session.EscalationResolved, session.SessionEscalated:
		return http.StatusConflict, conflict
	case session.ModeViolation:
		return ofRule(refusal)
	case session.RateLimited:
		return http.StatusTooManyRequests, rateLimited
	case session.Unavailable:
		return http.StatusServiceUnavailable, maintenance
	default:
		return http.StatusBadRequest, invalidInput
	}
}

// ofRule is what the refusal of a rule of the mode is to OAP.
func ofRule(refusal *session.Refusal) (status int, code string) {
	details, _ := refusal.Details.(jsontext.Value) // as it came over NATS
	var of struct {
		Rule string `json:"rule"`
	}
	if details == nil {
		details, _ = json.Marshal(refusal.Details) // then it has no rule
	}
	if json.Unmarshal(details, &of) != nil {
		of.Rule = ""
	}
	switch of.Rule {
	case "round", "max_rounds", "propose_once", "linked":
		return http.StatusConflict, conflict
	case "ccc":
		return http.StatusPreconditionFailed, preconditionFailed
	default:
		return http.StatusBadRequest, invalidInput
	}
}

// refuse answers with OAP's code for a refusal. What is no refusal is an internal cause: it
// is logged, and tells the client nothing.
func (g *Gateway) refuse(w http.ResponseWriter, err error) {
	refusal, is := errors.AsType[*session.Refusal](err)
	if !is {
		g.o.Service.Fault("oap", err)
		fail(w, http.StatusInternalServerError, internalError, "the broker cannot answer now")
		return
	}
	status, code := oapCode(refusal)
	if refusal == custody.ErrToken {
		status, code = http.StatusUnauthorized, authRequired
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", gateway.RetryAfter(refusal))
	}
	fail(w, status, code, refusal.Message)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	write(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func write(w http.ResponseWriter, status int, reply any) {
	data, err := json.Marshal(reply, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":"internal_error","message":"the broker cannot answer now"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
