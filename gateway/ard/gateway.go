// Package ardgateway shows to everybody which agents there are: as an AI catalog, by the
// search of Agentic Resource Discovery (ARD, draft 0.9), and as a list of cards.
//
//	gateway := ardgateway.New(ardgateway.Options{Agents: agents, Allow: allow})
//
//	GET  /.well-known/ai-catalog.json
//	GET  /.well-known/asp/agents.json
//	POST /search
//	GET  /agents                        the entries of agents, a page at a time
//	POST /explore                       ARD lets a registry answer 501, and this one does
//
// It shows what agents say of themselves, never what the registry holds of them, and no
// humans. Each address may ask so often.
package ardgateway

import (
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// The paths that are served.
const (
	CatalogPath = "/.well-known/ai-catalog.json"
	AgentsPath  = "/.well-known/asp/agents.json"
	SearchPath  = "/search"
	ListPath    = "/agents"
	ExplorePath = "/explore"
)

// The codes of errors, which are ARD's but for the last.
const (
	invalidArgument = "INVALID_ARGUMENT"
	notFound        = "NOT_FOUND"
	rateLimited     = "RATE_LIMIT_EXCEEDED"
	internalError   = "INTERNAL_ERROR"
	unimplemented   = "UNIMPLEMENTED"
)

// Media types of entries.
const (
	registryType = "application/ai-registry+json"
	cardType     = "application/asp-agent-card+json"
	a2aType      = "application/a2a-agent-card+json"
)

// Bounds.
const (
	maxBody    = 64 << 10
	maxEntries = 1_000 // of the catalog and of agents.json; the list and search have the others
	maxPage    = 100   // entries of one page
	maxWords   = 32    // of a search; more do not count
	maxTags    = 50    // of an entry
	maxFilter  = 8     // fields

	defaultResults = 10 // of one page of a search
	defaultItems   = 20 // of one page of the list
)

// Options say what is shown.
type Options struct {
	Agents func(after performatives.Agent) iter.Seq[api.Card] // all agents after one ("" is the beginning), by URI
	Allow  func(*http.Request) bool
	URL    string // at which others reach HTTP; "" is that of each request

	// A2A is where an agent's A2A card is, below the URL; "" for one that A2A does not reach.
	A2A func(api.Card) (path string)
}

// A Gateway serves its paths.
type Gateway struct {
	o         Options
	searching chan struct{} // a search reads all cards, so there is one at a time
}

// New makes a gateway.
func New(o Options) *Gateway { return &Gateway{o, make(chan struct{}, 1)} }

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := http.MethodGet
	if r.URL.Path == SearchPath || r.URL.Path == ExplorePath {
		method = http.MethodPost
	}
	switch {
	case r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead):
		w.Header().Set("Allow", method)
		fail(w, http.StatusMethodNotAllowed, invalidArgument, "use "+method)
	case !g.o.Allow(r):
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, rateLimited, "too many requests from your address")
	case r.URL.Path == CatalogPath:
		g.catalog(w, r)
	case r.URL.Path == AgentsPath:
		g.agents(w)
	case r.URL.Path == SearchPath:
		g.search(w, r)
	case r.URL.Path == ListPath:
		g.list(w, r)
	case r.URL.Path == ExplorePath:
		fail(w, http.StatusNotImplemented, unimplemented, "this registry does not count entries; POST /search finds them")
	default:
		fail(w, http.StatusNotFound, notFound, "there is no such path")
	}
}

func (g *Gateway) catalog(w http.ResponseWriter, r *http.Request) {
	host := hostOf(g.base(r))
	entries := []entry{{
		Identifier: urn(host, "registry", "parley"), Name: "parley at " + host, Type: registryType, URL: g.base(r),
		Description: "Agents that negotiate, with signed transcripts",
	}}
	for _, card := range g.first() {
		entries = append(entries, g.entry(card, g.base(r)))
	}
	write(w, http.StatusOK, "application/ai-catalog+json", map[string]any{
		"specVersion": "1.0", "host": map[string]string{"displayName": "parley at " + host}, "entries": entries,
	})
}

func (g *Gateway) agents(w http.ResponseWriter) {
	cards := []api.Card{}
	for _, card := range g.first() {
		cards = append(cards, public(card))
	}
	write(w, http.StatusOK, "application/json", api.Agents{Agents: cards})
}

func (g *Gateway) first() (cards []api.Card) {
	for card := range g.o.Agents("") {
		if cards = append(cards, card); len(cards) == maxEntries {
			break
		}
	}
	return cards
}

// list shows the entries of agents, by URI. The token of a page is the last agent of the page
// before, so that no page takes more than what it shows.
func (g *Gateway) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, err := defaultItems, error(nil)
	if text := query.Get("pageSize"); text != "" {
		size, err = strconv.Atoi(text)
	}
	if err != nil {
		size = 0 // which no page has
	}
	last := performatives.Agent(query.Get("pageToken"))
	if _, unknown := performatives.ParseAgent(string(last)); last != "" && unknown != nil || size < 1 || size > maxPage {
		noPage(w)
		return
	}
	if query.Has("filter") || query.Has("orderBy") {
		fail(w, http.StatusBadRequest, invalidArgument, "the list takes pageSize and pageToken; POST /search takes a filter")
		return
	}
	items := []entry{}
	reply := map[string]any{}
	for card := range g.o.Agents(last) {
		if len(items) == size {
			reply["pageToken"] = last
			break
		}
		items, last = append(items, g.entry(card, g.base(r))), card.Agent
	}
	reply["items"] = items
	write(w, http.StatusOK, "application/json", reply)
}

// start is how many results come before a page of a search.
func start(w http.ResponseWriter, size int, token string) (from int, ok bool) {
	var err error
	if token != "" {
		from, err = strconv.Atoi(token)
	}
	if err != nil || from < 0 || size < 1 || size > maxPage {
		noPage(w)
		return 0, false
	}
	return from, true
}

func noPage(w http.ResponseWriter) {
	fail(w, http.StatusBadRequest, invalidArgument, "pageSize is from 1 to 100, and pageToken comes from the page before")
}

// base is the URL at which others reach HTTP.
func (g *Gateway) base(r *http.Request) string {
	switch {
	case g.o.URL != "":
		return strings.TrimSuffix(g.o.URL, "/") + "/"
	case r.TLS != nil:
		return "https://" + r.Host + "/"
	}
	return "http://" + r.Host + "/"
}

// hostOf is the host in a URL, without its port.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "unknown"
	}
	return u.Hostname()
}

func fail(w http.ResponseWriter, status int, code, message string) {
	write(w, status, "application/json", map[string]string{"errorCode": code, "message": message})
}

func write(w http.ResponseWriter, status int, media string, reply any) {
	data, err := json.Marshal(reply, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"errorCode":"`+internalError+`","message":"the reply cannot be written"}`)
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=60")
	if status != http.StatusOK || media == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
