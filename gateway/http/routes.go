package httpgateway

import (
	"net/http"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
)

// A route is one row of the table of paths. A member of its verb's request comes from the
// path, the query or the body, by its name.
type route struct {
	at      api.Endpoint
	doc     string
	verb    api.Verb // what it calls
	body    bodyOf
	serve   func(*call) // instead of calling the verb
	resumes string      // the parameter at which a stream of events goes on
	public  bool        // without a token in the request
	success int         // 0 is 200
	empty   string      // when it is answered 204
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

// routes are the endpoints of verbs, and what HTTP has beside them.
func routes() []route {
	all := []route{
		{at: api.AboutEndpoint, doc: "what the broker is and speaks, for a client that decides whether it speaks that too", serve: (*call).about, public: true},
		{at: api.ProveEndpoint, doc: "get a token for an hour by a proof of the principal's key", body: proofBody, serve: (*call).prove, public: true, success: http.StatusCreated},
		{at: api.OpenEndpoint, doc: "open a session", body: openBody, serve: (*call).open, success: http.StatusCreated},
		{at: api.CloseEndpoint, doc: "CLOSE a session", body: closeBody, serve: (*call).close},
		{at: api.SubmitEndpoint, doc: "submit one act", body: actBody, serve: (*call).act},
		{at: api.MessageEndpoint, doc: "one entry of a session's transcript", verb: api.SessionMessages.Verb, serve: (*call).message},
		{at: api.SocketEndpoint, doc: "a WebSocket (subprotocol " + subprotocol + "): act, and hear entries as they are accepted", serve: (*call).socket, public: true, success: http.StatusSwitchingProtocols},
		events(api.SessionEventsEndpoint, api.SessionMessages.Verb, "since_sequence", (*call).events),
		events(api.InboxEventsEndpoint, api.InboxMessages.Verb, "cursor", (*call).inboxEvents),
		{at: api.WakeupEndpoint, doc: api.WakeupSet.Doc, verb: api.WakeupSet.Verb, body: verbBody},
	}
	for _, v := range api.Verbs() {
		if v.HTTP != "" {
			all = append(all, ofVerb(v))
		}
	}
	return all
}

// ofVerb is the route of a verb. Few do more than to call it.
func ofVerb(v api.Verb) route {
	r := route{at: v.HTTP, doc: v.Doc, verb: v}
	if r.at.Method() != http.MethodGet {
		r.body = verbBody
	}
	switch v.Name {
	case api.AgentRegister.Name:
		r.body, r.serve = cardBody, (*call).card
	case api.SessionSnapshot.Name:
		r.serve = (*call).snapshot
	case api.TurnPickup.Name:
		r.serve, r.empty = (*call).pickup, "no turn waits"
	case api.TurnRespond.Name:
		r.body, r.serve = turnBody, (*call).respond
	}
	return r
}

// events is a stream of events, which resumes at a parameter.
func events(at api.Endpoint, v api.Verb, resumes string, serve func(*call)) route {
	return route{
		at: at, doc: "events as they happen (SSE); Last-Event-ID resumes", verb: v, resumes: resumes, serve: serve,
		empty: "the session is over, and nothing comes after the event",
	}
}

// hasWorker reports whether the verb asks which of the caller's programs calls.
func (r *route) hasWorker() bool {
	if r.verb.Request == nil {
		return false
	}
	_, has := r.verb.Request.FieldByName("Worker")
	return has
}

// acts reports whether the route changes something, which a read-only token may not.
func (r *route) acts() bool {
	return r.at.Method() != http.MethodGet && (r.verb.Name == "" || r.verb.Access == api.Write)
}

// takesHead reports whether the route takes If-Match.
func (r *route) takesHead() bool { return r.body == actBody || r.body == closeBody }

// A call is one request.
type call struct {
	gateway.Caller // let in by the request's token, or by a WebSocket's first frame

	g     *Gateway
	w     http.ResponseWriter
	r     *http.Request
	route route
}

// session is the session in the path.
func (c *call) session() performatives.SessionID {
	return performatives.SessionID(c.r.PathValue("sessionId"))
}
