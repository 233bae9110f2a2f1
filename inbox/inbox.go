// Package inbox serves the escalation inbox as web pages, where humans decide what
// agents may not (PROTOCOL.md §7).
//
//	mux.Handle("/inbox/", http.StripPrefix("/inbox", inbox.New(inbox.Options{Broker: b})))
//
// Like the NATS API and the command line, the pages call the broker's verbs: every
// change goes through [Broker] as the human who is signed in, and is authorized
// there. The server renders the pages, which are readable without JavaScript. A
// counterparty's text is never markup. A decision is an envelope that the browser
// builds and signs with a key that never leaves it. No GET changes anything.
package inbox

import (
	"context"
	"html/template"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Broker is what the pages need of the broker: its verbs and submit, called as an
// authenticated principal.
type Broker interface {
	// CallAs answers an api verb, with the reply's JSON or a *session.Refusal.
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	// SubmitAs submits an envelope.
	SubmitAs(ctx context.Context, as performatives.Agent, s performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// Redeem enrols a browser's key with a code, and returns the code's human.
	Redeem(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error)
	// NameOf returns a principal's display name in the registry, or "".
	NameOf(a performatives.Agent) string
	// WatchInbox tells of new messages in a principal's inbox, until stop.
	WatchInbox(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error)
}

// Options configure an Inbox.
type Options struct {
	Broker Broker
	Key    performatives.Key                                // the broker's, named in decisions
	Dev    bool                                             // no logins: the visitor chooses a human
	Humans func(context.Context) ([]api.Card, error)        // under Dev: the humans to choose from
	Meet   func(context.Context, performatives.Agent) error // under Dev: registers a new human
	From   func(*http.Request) string                       // the address of a request; nil is that of its connection
	Log    *zap.Logger                                      // nil discards
	Now    func() time.Time                                 // nil is time.Now
}

// An Inbox serves the pages.
type Inbox struct {
	Options
	mux       *http.ServeMux
	pages     *template.Template
	assets    *assets
	people    *people
	failures  *failures
	verifying chan struct{} // holds one
	ending    chan struct{} // closed to end live connections
	end       sync.Once
}

// New returns the pages. They expect their URL prefix to be stripped.
func New(o Options) *Inbox {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.From == nil {
		o.From = func(r *http.Request) string { return hostOf(r.RemoteAddr) }
	}
	i := &Inbox{
		Options: o, mux: http.NewServeMux(), assets: openAssets(), people: newPeople(o.Now), failures: newFailures(o.Now), verifying: make(chan struct{}, 1), ending: make(chan struct{}),
	}
	i.pages = i.openPages()
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request, *person){
		"GET /{$}":              whole(i, "queue", i.wholeQueue, func(p *page, q *queue) { p.Title, p.Queue = "Inbox", q }),
		"GET /items/{id}":       i.itemPage,
		"GET /sessions":         i.sessionsPage,
		"GET /sessions/{id}":    i.sessionPage,
		"GET /insights":         i.insightsPage,
		"GET /agents":           whole(i, "agents", i.agents, func(p *page, a *agents) { p.Title, p.Agents = "Agents", a }),
		"GET /settings":         i.settingsPage,
		"GET /checks":           whole(i, "checks", i.checks, func(p *page, c *checks) { p.Title, p.Checks = "Checks", c }),
		"GET /checks/{id}":      whole(i, "checks", i.check, func(p *page, c *check) { p.Title, p.Check = c.Title, c }),
		"GET /part/agents":      part(i, "agentlist", i.agents),
		"GET /part/queue":       part(i, "queue", i.queueBeside),
		"GET /part/checks":      part(i, "checks", i.checks),
		"GET /part/checks/{id}": part(i, "check", i.check),
		"GET /part/items/{id}":  part(i, "item", i.item),
		"GET /decided.csv":      i.export,
		"GET /events":           i.follow,
		"POST /submit":          i.submit,
		"POST /verify/{id}":     i.verify,
		"POST /unenrol":         i.unenrol,
		"POST /call/{verb}":     i.call,
	} {
		i.mux.HandleFunc(pattern, i.signedIn(page))
	}
	i.mux.HandleFunc("GET /login", i.loginPage)
	i.mux.HandleFunc("POST /challenge", i.challenge)
	i.mux.HandleFunc("POST /enrol", i.enrol)
	i.mux.HandleFunc("POST /login", i.login)
	i.mux.HandleFunc("POST /logout", i.logout)
	i.mux.HandleFunc("GET /static/{version}/{name}", i.assets.serve)
	return i
}

// ServeHTTP serves a request.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if i.guarded(w, r) {
		i.mux.ServeHTTP(w, r)
	}
}

// Close ends live connections, so that the HTTP server can shut down.
func (i *Inbox) Close() { i.end.Do(func() { close(i.ending) }) }
