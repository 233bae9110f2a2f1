// Package inbox serves the escalation inbox as web pages, where humans decide what
// agents may not (PROTOCOL.md §7).
//
//	mux.Handle("/inbox/", http.StripPrefix("/inbox", inbox.New(inbox.Options{Service: service, …})))
//
// Like the NATS API and the command line, the pages call the broker's verbs: every
// change goes through [gateway.Service] as the human who is signed in, and is authorized
// there. The server renders the pages, which are readable without JavaScript. A
// counterparty's text is never markup. A decision is an envelope that the browser
// builds and signs with a key that never leaves it. No GET changes anything.
package inbox

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Options configure an Inbox.
type Options struct {
	Service *gateway.Service // calls verbs and submits, as a human who is signed in
	// Redeem enrols a browser's key with a code, and returns the code's human.
	Redeem func(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error)
	NameOf func(performatives.Agent) string // a principal's display name in the registry, or ""
	// Operates reports whether a human may read how the installation does; nil is nobody.
	Operates func(performatives.Agent) bool
	Key      performatives.Key                                // the broker's, named in decisions
	Keys     performatives.KeyHistory                         // of the broker's key, once it has been rotated
	HTTPS    bool                                             // others reach the pages by it, whoever ends TLS
	Dev      bool                                             // no logins: the visitor chooses a human
	Humans   func(context.Context) ([]api.Card, error)        // under Dev: the humans to choose from
	Meet     func(context.Context, performatives.Agent) error // under Dev: registers a new human
	// OpenRulings leaves open what people decide, unless they seal it.
	OpenRulings bool
	OpenID      *openid.Provider           // that signs people in, until SetOpenID; nil is none
	From        func(*http.Request) string // the address of a request; nil is that of its connection
	Log         *zap.Logger                // nil discards
	Now         func() time.Time           // nil is time.Now
}

// An Inbox serves the pages.
type Inbox struct {
	Options
	mux       *http.ServeMux
	pages     *template.Template
	assets    *assets
	people    *people
	failures  *failures
	openID    atomic.Pointer[openid.Provider]
	verifying gateway.Turns
	feeding   gateway.Turns
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
		Options: o, mux: http.NewServeMux(), assets: openAssets(), people: newPeople(o.Now), failures: newFailures(o.Now), verifying: o.Service.Turns(1), feeding: o.Service.Turns(feedsAtOnce), ending: make(chan struct{}),
	}
	i.pages = i.openPages()
	i.openID.Store(o.OpenID)
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request, *person){
		"GET /{$}":              whole(i, "queue", "panes", i.wholeQueue, func(*panes) string { return "Inbox" }),
		"GET /items/{id}":       whole(i, "queue", "panes", i.itemBesideQueue, func(p *panes) string { return p.Item.Title }),
		"GET /home":             whole(i, "home", "home", i.home, func(*home) string { return "Home" }),
		"GET /sessions":         whole(i, "sessions", "deals", i.deals, func(*deals) string { return "Deals" }),
		"GET /sessions/{id}":    whole(i, "sessions", "dealpage", i.deal, func(d *deal) string { return d.Title }),
		"GET /due":              whole(i, "sessions", "due", i.due, func(*dues) string { return "What is due" }),
		"GET /agreements":       whole(i, "agreements", "agreements", i.agreements, func(*agreements) string { return "Agreements" }),
		"GET /operator":         whole(i, "operator", "operator", i.operator, func(*installation) string { return "Operation" }),
		"GET /insights":         whole(i, "insights", "insights", i.insights, func(*insights) string { return "Insights" }),
		"GET /agents":           whole(i, "agents", "agents", i.agents, func(*agents) string { return "Agents" }),
		"GET /settings":         whole(i, "settings", "settings", i.settings, func(*settings) string { return "Settings" }),
		"GET /checks":           whole(i, "checks", "checkspane", i.checks, func(*checks) string { return "Checks" }),
		"GET /checks/{id}":      whole(i, "checks", "checkpane", i.check, func(c *check) string { return oneLine(c.Scope) }),
		"GET /part/due":         part(i, "duenow", i.dueNow),
		"GET /part/agents":      part(i, "agentlist", i.agents),
		"GET /part/queue":       part(i, "queue", i.queueBeside),
		"GET /part/find":        part(i, "find", i.find),
		"GET /part/waiting":     part(i, "waiting", i.waiting),
		"GET /part/several":     part(i, "several", i.several),
		"GET /part/checks":      part(i, "checks", i.checks),
		"GET /part/checks/{id}": part(i, "check", i.check),
		"GET /part/items/{id}":  part(i, "deal", i.itemPage),
		"GET /amount":           i.understand,
		"GET /decided.csv":      i.export,
		"GET /events":           i.follow,

		"GET /sessions/{id}/obligation":      whole(i, "execution", "obligationpane", i.obligation, func(o *obligation) string { return oneLine(o.Action) }),
		"GET /disputes":                      whole(i, "sessions", "disputes", i.disputes, func(*disputes) string { return "Disputes" }),
		"GET /sessions/{id}/dispute":         whole(i, "execution", "disputepane", i.dispute, func(d *dispute) string { return oneLine(d.Claim) }),
		"GET /part/sessions/{id}/dispute":    part(i, "dispute", i.dispute),
		"GET /part/sessions/{id}/obligation": part(i, "obligation", i.obligation),

		"GET /sessions/{id}/transcript": i.transcript,
		"GET /deals.csv":                i.exportDeals,
		"GET /due.csv":                  i.exportDue,
		"GET /sessions/{id}/agreement":  i.agreement,
		"GET /sessions/{id}/evidence":   i.evidence,

		"POST /verify/{id}": i.verify,

		"POST /submit":      i.acts(i.submit),
		"POST /unenrol":     i.acts(i.unenrol),
		"POST /unseal":      i.acts(i.unseal),
		"POST /feed":        i.acts(i.addFeed),
		"POST /feed/remove": i.acts(i.removeFeed),
		"POST /call/{verb}": i.acts(i.call),
	} {
		i.mux.HandleFunc(pattern, i.signedIn(page))
	}
	i.mux.HandleFunc("GET /calendar/{file}", i.feed)
	i.mux.HandleFunc("GET /login", i.loginPage)
	i.mux.HandleFunc("GET /openid", i.toProvider)
	i.mux.HandleFunc("GET /callback", i.callback)
	i.mux.HandleFunc("POST /callback", i.fromProvider)
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

//go:embed templates/*.html
var templates embed.FS

func (i *Inbox) openPages() *template.Template {
	pages := template.New("")
	return template.Must(pages.Funcs(template.FuncMap{
		"asset": i.assets.at, "called": i.called, "path": pathOf, "size": size, "bytes": func(n float64) uint64 { return uint64(n) }, "rate": render.Rate, "ms": render.Milliseconds, "count": func(n uint64) int { return int(min(n, math.MaxInt32)) },
		"org": organisation, "letters": letters, "lacks": lacks, "together": together, "figures": figures, "plainly": plainly,
		"money": func(n float64, code string) template.HTML { return together(render.Money(n, code)) },
		"iso":   iso, "stamp": stamp, "moment": render.Moment, "reason": render.Reason, "ending": render.Ending, "phase": func(p any) string { return sentence(strings.ToLower(fmt.Sprint(p))) },
		"clean": clean, "line": oneLine, "brief": brief, "prose": asProse, "plural": plural, "sentence": sentence, "link": link,
		"blocks": render.Page.Blocks, "grant": granted, "classified": classified, "consents": render.Consents, "next": func(n int) int { return n + 1 },
		"left": func(due, now time.Time) string { return span(due.Sub(now)) },
		"ago":  func(at, now time.Time) string { return age(now.Sub(at)) },
		// The fork of html/template calls no methods, so that the linker can leave out those that nobody calls.
		"unset": time.Time.IsZero, "human": performatives.Agent.IsHuman, "over": session.Phase.Over, "code": (*escalation.Amount).Code, "away": (*api.Away).At,
		"overdue": (*dueRow).overdue, "text": render.Block.Text, "value": render.Row.Text, "words": render.Event.Words, "note": render.Event.Note,
		"title": render.Term.Title, "was": render.Term.Was, "now": render.Term.Now, "delta": render.Term.Delta, "ratio": render.Term.Ratio,
		"required": (*openid.Provider).Required, "host": (*openid.Provider).Host,
		"draw": func(name string, data any) (template.HTML, error) {
			var out bytes.Buffer
			err := pages.ExecuteTemplate(&out, name, data)
			return template.HTML(out.String()), err
		},
	}).ParseFS(templates, "templates/*.html"))
}

// A page is the data of every page.
type page struct {
	Base  string // relative URL of the inbox, for links
	Here  string // URL of the page, relative to that
	Title string
	Dev   bool
	Open  int // items of the queue
	// OpenRulings has the other sides read what people decide.
	OpenRulings bool
	Key         performatives.Key // of the broker, named in decisions
	Me          *person
	Now         time.Time
	At          string // which page it is
	Cursor      string // where live updates start
	Waiting     string // how many checks wait, for the menu
	Operates    bool   // the reader is an operator

	View string // the template of what it shows
	Body any

	Trouble string
	Humans  []api.Card // under --dev, to choose from

	OpenID *openid.Provider // at sign-in
	Next   string           // at sign-in: the page that was asked for
}

// panes are the queue and the item beside it, if any.
type panes struct {
	Queue *queue
	Item  *deal
}

func (i *Inbox) page(r *http.Request, who *person, at, title string) *page {
	p := &page{
		Base: strings.Repeat("../", max(0, strings.Count(r.URL.Path, "/")-1)), Here: link(strings.TrimPrefix(r.URL.Path, "/"), r.URL.RawQuery),
		Title: title, Dev: i.Dev, OpenRulings: i.OpenRulings, Key: i.Key, Me: who, Now: i.Now(), At: at,
		Operates: i.Operates != nil && who != nil && i.Operates(who.Agent),
	}
	if at == "queue" || at == "checks" || at == "execution" {
		if at, err := i.cursor(r.Context(), who); err == nil { // else the browser reloads everything when it connects
			p.Cursor = at.String()
		}
	}
	if who != nil {
		if waiting, err := i.waiting(r, who); err == nil {
			p.Waiting = waiting
		}
	}
	return p
}

// show renders a template completely before it writes, and escapes what is invisible
// wherever it stands: in text, attributes and the values of forms.
func (i *Inbox) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var out bytes.Buffer
	if err := i.pages.ExecuteTemplate(&out, name, data); err != nil {
		i.Log.Error("inbox page", zap.String("page", name), zap.Error(err))
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, status, []byte(clean(out.String())))
}

// fault logs the internal cause of an answer, unless the browser went away.
func (i *Inbox) fault(r *http.Request, err error) {
	if r.Context().Err() == nil {
		i.Log.Warn("inbox", zap.String("path", r.URL.Path[:min(len(r.URL.Path), maxNext)]), zap.Error(err))
	}
}

// trouble shows an error as a page, or as a part.
func (i *Inbox) trouble(w http.ResponseWriter, r *http.Request, who *person, err error) {
	status, words := http.StatusServiceUnavailable, "An internal error occurred. Try again."
	var refusal *session.Refusal
	if errors.As(err, &refusal) {
		status, words = refusal.Code.Status(), refusal.Message
	} else {
		i.fault(r, err)
	}
	p := i.page(r, who, "", "Not available")
	p.Trouble = words
	if strings.HasPrefix(r.URL.Path, "/part/") {
		i.show(w, r, status, "trouble", p)
		return
	}
	i.show(w, r, status, "page", p)
}

// A load reads what a page or a part shows.
type load[T any] func(*http.Request, *person) (T, error)

// whole serves a page with a view of what it loads.
func whole[T any](i *Inbox, at, view string, load load[T], title func(T) string) func(http.ResponseWriter, *http.Request, *person) {
	return func(w http.ResponseWriter, r *http.Request, who *person) {
		p := i.page(r, who, at, "") // first: live updates start before what is loaded
		loaded, err := load(r, who)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		p.View, p.Body, p.Title = view, loaded, title(loaded)
		switch shown := p.Body.(type) {
		case *panes:
			p.Open = shown.Queue.Counts.Open
		case *insights:
			if !shown.Complete {
				w.Header().Set("Refresh", "2") // the broker still reads
			}
		}
		i.show(w, r, http.StatusOK, "page", p)
	}
}

// part serves a part of a page, for its scripts.
func part[T any](i *Inbox, template string, load load[T]) func(http.ResponseWriter, *http.Request, *person) {
	return func(w http.ResponseWriter, r *http.Request, who *person) {
		loaded, err := load(r, who)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		i.show(w, r, http.StatusOK, template, loaded)
	}
}

func (i *Inbox) loginPage(w http.ResponseWriter, r *http.Request) {
	p := i.page(r, nil, "login", "Sign in")
	p.OpenID, p.Next = i.openID.Load(), r.URL.Query().Get("next")
	if i.Dev {
		humans, err := i.Humans(r.Context())
		if err != nil {
			i.trouble(w, r, nil, err)
			return
		}
		p.Humans = humans
	}
	i.show(w, r, http.StatusOK, "page", p)
}
