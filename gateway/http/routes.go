package httpgateway

import (
	"net/http"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
)

// A route is one row of the table of paths. A member of its verb's request comes from the
// path, the query or the body, by its name.
type route struct {
	method, path string
	doc          string
	verb         api.Verb          // what it calls
	names        map[string]string // query parameters that HTTP calls otherwise than the verb
	body         bodyOf
	serve        func(*call) // instead of calling the verb
	resumes      string      // the parameter at which a stream of events goes on
	public       bool        // without a token in the request
	success      int         // 0 is 200
	empty        string      // when it is answered 204
}

// bodyOf says what a request has as its body.
type bodyOf int

const (
	noBody    bodyOf = iota
	verbBody         // the members of the verb's request that are not in the path
	turnBody         // the same, or a signed envelope
	actBody          // an act: {performative, body, …}, or a signed envelope
	openBody         // what opens a session, or a signed envelope
	closeBody        // the body of a CLOSE
	cardBody         // the caller's card
	proofBody        // a proof for a token
)

// routes is the table of G2.
func routes() []route {
	verb := func(method, path string, v api.Verb, body bodyOf, change ...func(*route)) route {
		r := route{method: method, path: path, verb: v, doc: v.Doc, body: body}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	get := func(path string, v api.Verb, change ...func(*route)) route {
		return verb(http.MethodGet, path, v, noBody, change...)
	}
	post := func(path string, v api.Verb) route { return verb(http.MethodPost, path, v, verbBody) }
	return []route{
		{method: http.MethodPost, path: "/token", doc: "get a token for an hour by a proof of the principal's key", body: proofBody, serve: (*call).prove, public: true, success: http.StatusCreated},
		{method: http.MethodPost, path: "/sessions", doc: "open a session", body: openBody, serve: (*call).open, success: http.StatusCreated},
		get("/sessions", api.SessionList.Verb),
		get("/sessions/{sessionId}", api.SessionGet.Verb),
		{method: http.MethodDelete, path: "/sessions/{sessionId}", doc: "CLOSE a session", body: closeBody, serve: (*call).close},
		{method: http.MethodPost, path: "/sessions/{sessionId}/messages", doc: "submit one act", body: actBody, serve: (*call).act},
		get("/sessions/{sessionId}/messages", api.SessionMessages.Verb, called("since_sequence", "since"), called("cursor", "since")),
		get("/sessions/{sessionId}/messages/{messageId}", api.SessionMessages.Verb, func(r *route) {
			r.doc, r.serve = "one entry of a session's transcript", (*call).message
		}),
		get("/sessions/{sessionId}/events", api.SessionMessages.Verb, events("since_sequence", (*call).events)),
		{method: http.MethodGet, path: "/sessions/{sessionId}/ws", doc: "a WebSocket (subprotocol " + subprotocol + "): act, and hear entries as they are accepted", serve: (*call).socket, public: true, success: http.StatusSwitchingProtocols},
		get("/inbox/events", api.InboxMessages.Verb, events("cursor", (*call).inboxEvents)),
		get("/agents", api.AgentList.Verb, called("min_trust", "minTrust")),
		get("/agents/{agentId}/card", api.AgentGet.Verb),
		verb(http.MethodPut, "/agents/{agentId}/card", api.AgentRegister.Verb, cardBody, func(r *route) { r.serve = (*call).card }),
		verb(http.MethodPost, "/turns/pickup", api.TurnPickup.Verb, verbBody, func(r *route) { r.serve, r.empty = (*call).pickup, "no turn waits" }),
		verb(http.MethodPost, "/turns/{turnId}/respond", api.TurnRespond.Verb, turnBody, func(r *route) { r.serve = (*call).respond }),
		post("/turns/{turnId}/release", api.TurnRelease.Verb),
		get("/turns/wait", api.TurnWait.Verb),
		get("/agreements", api.AgreementList.Verb),
		get("/agreements/{agreementId}", api.AgreementGet.Verb),
		get("/discover", api.AgentSearch.Verb, called("min_trust", "minTrust")),
		post("/discover", api.DiscoveryCall.Verb),
		get("/insights", api.InsightsGet.Verb),
		get("/escalations", api.EscalationList.Verb),
		get("/escalations/{escalationId}", api.EscalationGet.Verb),
		get("/escalations/{escalationId}/history", api.EscalationHistory.Verb),
		post("/escalations/{escalationId}/claim", api.EscalationClaim.Verb),
		post("/escalations/{escalationId}/release", api.EscalationRelease.Verb),
		post("/escalations/{escalationId}/assign", api.EscalationAssign.Verb),
		post("/escalations/{escalationId}/comment", api.EscalationComment.Verb),
		post("/escalations/{escalationId}/transfer", api.EscalationTransfer.Verb),
	}
}

// events makes a route a stream of events, which resumes at a parameter.
func events(resumes string, serve func(*call)) func(*route) {
	return func(r *route) {
		r.doc, r.resumes, r.serve = "events as they happen (SSE); Last-Event-ID resumes", resumes, serve
		r.empty = "the session is over, and nothing comes after the event"
	}
}

// called says what HTTP calls a member of the verb's request.
func called(parameter, member string) func(*route) {
	return func(r *route) {
		if r.names == nil {
			r.names = map[string]string{}
		}
		r.names[parameter] = member
	}
}

// inPath are the parameters in the path.
func (r *route) inPath() (names []string) {
	for part := range strings.SplitSeq(r.path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// hasWorker tells whether the verb asks which of the caller's programs calls.
func (r *route) hasWorker() bool {
	if r.verb.Request == nil {
		return false
	}
	_, has := r.verb.Request.FieldByName("Worker")
	return has
}

// acts tells whether the route changes something, which a read-only token may not.
func (r *route) acts() bool { return r.method != http.MethodGet }

// A call is one request.
type call struct {
	g     *Gateway
	w     http.ResponseWriter
	r     *http.Request
	route route
	pass  custody.Pass
}

// session is the session in the path.
func (c *call) session() performatives.SessionID {
	return performatives.SessionID(c.r.PathValue("sessionId"))
}
