// Package inbox is the escalation inbox as web pages: where a human sees what
// an agent may not decide, and decides it (PROTOCOL.md §7).
//
//	mux.Handle("/inbox/", http.StripPrefix("/inbox", inbox.New(inbox.Options{Broker: b})))
//
// It is one of three faces of the same commands, beside the NATS api and the
// command line: whatever changes something goes through [Broker], as the human
// who is signed in, and is judged there. The pages are made on the server, and
// stay readable without any script; what counterparties wrote is text to them,
// never markup. A decision is an envelope that the browser makes and signs with
// a key that never leaves it; no GET changes anything.
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

// A Broker is what the pages need of the broker: the commands that it also
// hears over NATS, called as a principal that has proven who they are.
type Broker interface {
	// CallAs answers an api verb, with the reply's JSON or a *session.Refusal.
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	// SubmitAs submits an envelope.
	SubmitAs(ctx context.Context, as performatives.Agent, s performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// Redeem takes an enrolment code for a key that is in a browser, and says whose it was.
	Redeem(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error)
}

// Options say what the pages show and how.
type Options struct {
	Broker Broker
	Key    performatives.Key                                // the broker's, which decisions name
	Dev    bool                                             // no login: whoever looks picks who they are
	Humans func(context.Context) ([]api.Card, error)        // under Dev: those to pick from
	Meet   func(context.Context, performatives.Agent) error // under Dev: registers one who is not, as their first act would
	Log    *zap.Logger                                      // nil is silent
	Now    func() time.Time                                 // nil is time.Now
}

// An Inbox serves the pages.
type Inbox struct {
	Options
	mux    *http.ServeMux
	pages  *template.Template
	assets *assets
	people *people
	ending chan struct{} // closed when following has to end
	end    sync.Once
}

// New makes the pages; they expect their own prefix to be stripped.
func New(o Options) *Inbox {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	i := &Inbox{Options: o, mux: http.NewServeMux(), assets: openAssets(), people: newPeople(o.Now), ending: make(chan struct{})}
	i.pages = openPages(i.assets)
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request, *person){
		"GET /{$}":             i.queuePage,
		"GET /items/{id}":      i.itemPage,
		"GET /sessions":        i.sessionsPage,
		"GET /sessions/{id}":   i.sessionPage,
		"GET /part/queue":      i.queuePart,
		"GET /part/items/{id}": i.itemPart,
		"GET /events":          i.follow,
		"POST /submit":         i.submit,
		"POST /call/{verb}":    i.call,
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

// ServeHTTP answers one request.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if i.guarded(w, r) {
		i.mux.ServeHTTP(w, r)
	}
}

// Close ends what follows the queue live, so that a server can shut down.
func (i *Inbox) Close() { i.end.Do(func() { close(i.ending) }) }
