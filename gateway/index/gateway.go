// Package indexgateway serves the paths by which Index Network's agents poll for their turns
// and answer them, so that its clients work unchanged (docs/GATEWAYS.md).
//
//	mux.Handle(indexgateway.Base, indexgateway.New(service))
//
//	POST /api/agents/{id}/negotiations/pickup
//	POST /api/agents/{id}/negotiations/{negotiationId}/respond
//
// A negotiation is a session in bilateral/1, its source the inviter. {id} is the id of the
// caller's token. The gateway calls turn.pickup and turn.respond, and translates between
// Index's actions and acts; no rule lives here.
package indexgateway

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/session"
)

// Base is the path that all routes begin with.
const Base = "/api/agents/"

// A Gateway serves requests below Base.
type Gateway struct {
	service *gateway.Service
	mux     *http.ServeMux
}

// New makes a gateway.
func New(s *gateway.Service) *Gateway {
	g := &Gateway{service: s, mux: http.NewServeMux()}
	g.mux.HandleFunc("POST "+Base+"{id}/negotiations/pickup", g.serve((*call).pickup))
	g.mux.HandleFunc("POST "+Base+"{id}/negotiations/{negotiationId}/respond", g.serve((*call).respond))
	g.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fail(w, http.StatusNotFound, "Not found") })
	return g
}

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	g.mux.ServeHTTP(w, r)
}

// A call is one request.
type call struct {
	gateway.Caller

	g *Gateway
	w http.ResponseWriter
	r *http.Request
}

// serve authenticates a request and answers it: a reply of nil is 204.
func (g *Gateway) serve(do func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{g: g, w: w, r: r}
		err := c.enter()
		var reply any
		if err == nil {
			reply, err = do(c)
		}
		switch {
		case err != nil:
			g.refuse(w, err)
		case reply == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			write(w, http.StatusOK, reply)
		}
	}
}

// enter finds whom the request is for: {id} is the caller's own.
func (c *call) enter() (err error) {
	bearer := cmp.Or(custody.Bearer(c.r.Header.Get("Authorization")), c.r.Header.Get("X-Api-Key"))
	if c.Caller, err = c.g.service.Admit(c.r.Context(), bearer); err != nil {
		return err
	}
	if c.ReadOnly || c.Worker != c.r.PathValue("id") {
		return problem{http.StatusForbidden, "The agent is not yours"}
	}
	return nil
}

// read reads the body as JSON.
func (c *call) read(w any) error {
	data, err := c.ReadBody(c.w, c.r)
	switch refusal := new(session.Refusal); {
	case errors.As(err, &refusal) && refusal.Code == session.TooLarge:
		return problem{http.StatusRequestEntityTooLarge, "The body is too large"}
	case errors.As(err, &refusal):
		return err
	case err != nil:
		return problem{http.StatusBadRequest, "The body ends early"}
	case json.Unmarshal(data, w) != nil:
		return problem{http.StatusBadRequest, "Invalid request body"}
	}
	return nil
}

// A problem is a refusal of this gateway.
type problem struct {
	status int
	why    string
}

func (p problem) Error() string { return p.why }

// refuse answers with Index's statuses: what the protocol refuses of a turn that is the
// caller's is a bad body, and its claim stays.
func (g *Gateway) refuse(w http.ResponseWriter, err error) {
	own, is := errors.AsType[problem](err)
	refusal, protocol := errors.AsType[*session.Refusal](err)
	switch {
	case is:
		fail(w, own.status, own.why)
	case err == custody.ErrToken: //nolint:errorlint // it comes as it is
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "Unauthorized")
	case !protocol:
		g.service.Fault("index", err)
		fail(w, http.StatusServiceUnavailable, "Unavailable")
	case ofTurn(refusal):
		if refusal.Code.Status() == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", gateway.RetryAfter(refusal))
		}
		fail(w, refusal.Code.Status(), refusal.Message)
	default:
		fail(w, http.StatusBadRequest, refusal.Message)
	}
}

// ofTurn reports whether a refusal is about the turn or the broker, and not about the body.
func ofTurn(refusal *session.Refusal) bool {
	switch refusal.Code {
	case session.UnknownSession, session.RateLimited, session.Unavailable, session.UnknownAgent:
		return true
	default:
		return api.TurnOf(refusal) != ""
	}
}

// fail writes an error as Index's clients read it.
func fail(w http.ResponseWriter, status int, why string) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	write(w, status, struct {
		Error string `json:"error"`
	}{why})
}

func write(w http.ResponseWriter, status int, reply any) {
	data, err := json.Marshal(reply, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"Unavailable"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
