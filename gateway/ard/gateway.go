// Package ardgateway shows to everybody which agents there are: as an AI catalog, by the
// search of Agentic Resource Discovery (ARD, draft 0.9), and as a list of cards.
//
//	gateway := ardgateway.New(ardgateway.Options{Agents: agents, Allow: allow})
//
//	GET  /.well-known/ai-catalog.json
//	GET  /.well-known/asp/agents.json
//	POST /search
//
// It shows what agents say of themselves, never what the registry holds of them, and no
// humans. Each address may ask so often.
package ardgateway

import (
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// The paths that are served.
const (
	CatalogPath = "/.well-known/ai-catalog.json"
	AgentsPath  = "/.well-known/asp/agents.json"
	SearchPath  = "/search"
)

// Media types of entries.
const (
	registryType = "application/ai-registry+json"
	cardType     = "application/asp-agent-card+json"
)

// Bounds.
const (
	maxBody    = 64 << 10
	maxEntries = 1_000 // of the catalog and of the list; search finds the others
	maxResults = 100   // of one page of a search
	maxWords   = 32    // of a search; more do not count
	maxTags    = 50    // of an entry
	maxFilter  = 8     // fields
)

// Options say what is shown.
type Options struct {
	Agents func() iter.Seq[api.Card] // all agents, by URI
	Allow  func(*http.Request) bool
}

// A Gateway serves its three paths.
type Gateway struct {
	o         Options
	searching chan struct{} // a search reads all cards, so there is one at a time
}

// New makes a gateway.
func New(o Options) *Gateway { return &Gateway{o, make(chan struct{}, 1)} }

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := http.MethodGet
	if r.URL.Path == SearchPath {
		method = http.MethodPost
	}
	switch {
	case r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead):
		w.Header().Set("Allow", method)
		fail(w, http.StatusMethodNotAllowed, "INVALID_ARGUMENT", "use "+method)
	case !g.o.Allow(r):
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "too many requests from your address")
	case r.URL.Path == CatalogPath:
		g.catalog(w, r)
	case r.URL.Path == AgentsPath:
		g.agents(w)
	case r.URL.Path == SearchPath:
		g.search(w, r)
	default:
		fail(w, http.StatusNotFound, "NOT_FOUND", "there is no such path")
	}
}

// An entry is one of a catalog.
type entry struct {
	Identifier   string    `json:"identifier"`
	Name         string    `json:"displayName"`
	Type         string    `json:"type"`
	URL          string    `json:"url,omitzero"`
	Data         *api.Card `json:"data,omitzero"`
	Description  string    `json:"description,omitzero"`
	Tags         []string  `json:"tags,omitzero"`
	Capabilities []string  `json:"capabilities,omitzero"`
	UpdatedAt    string    `json:"updatedAt,omitzero"`
}

// A result is an entry that a search found.
type result struct {
	entry
	Score  int    `json:"score"` // 0 to 100: how many of the words the card has
	Source string `json:"source"`
}

func (g *Gateway) catalog(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	entries := []entry{{
		Identifier: "urn:air:" + plain(host) + ":registry:parley", Name: "parley at " + r.Host, Type: registryType, URL: base(r),
		Description: "Agents that negotiate, with signed transcripts",
	}}
	for _, card := range g.first() {
		entries = append(entries, entryOf(card))
	}
	write(w, http.StatusOK, "application/ai-catalog+json", map[string]any{
		"specVersion": "1.0", "host": map[string]string{"displayName": "parley at " + r.Host}, "entries": entries,
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
	for card := range g.o.Agents() {
		if cards = append(cards, card); len(cards) == maxEntries {
			break
		}
	}
	return cards
}

// A query is the body of a search.
type query struct {
	Query struct {
		Text   *string                   `json:"text"`
		Filter map[string]jsontext.Value `json:"filter,omitzero"`
	} `json:"query"`
	Federation string `json:"federation,omitzero"`
	PageSize   *int   `json:"pageSize,omitzero"`
	PageToken  string `json:"pageToken,omitzero"`
}

// search finds the agents whose cards have most of the words.
func (g *Gateway) search(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	var q query
	size, from := 10, 0
	switch {
	case len(data) > maxBody:
		fail(w, http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT", "the body has at most 64 KiB")
		return
	case err != nil || json.Unmarshal(data, &q, json.RejectUnknownMembers(true)) != nil:
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", `the body is {"query": {"text": …, "filter": {…}}, "federation": …, "pageSize": …, "pageToken": …}`)
		return
	case q.Query.Text == nil:
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "query.text is required")
		return
	case len(q.Query.Filter) > maxFilter:
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "filter has at most 8 fields")
		return
	case !slices.Contains([]string{"", "auto", "referrals", "none"}, q.Federation):
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "federation is auto, referrals or none")
		return
	}
	if q.PageSize != nil {
		size = *q.PageSize
	}
	if q.PageToken != "" {
		from, err = strconv.Atoi(q.PageToken)
	}
	if err != nil || from < 0 || size < 1 || size > maxResults {
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "pageSize is from 1 to 100, and pageToken comes from the page before")
		return
	}
	select {
	case g.searching <- struct{}{}:
	case <-r.Context().Done():
		return // the client went away
	}
	found, unknown := g.find(q)
	<-g.searching
	if unknown != "" {
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "filter takes identifier, displayName, type, tags and capabilities, each with a text or texts; not "+unknown)
		return
	}
	found = found[min(from, len(found)):]
	results := []result{}
	for _, m := range found[:min(size, len(found))] {
		results = append(results, result{entryOf(m.card), m.score, base(r)})
	}
	reply := map[string]any{"results": results}
	if len(found) > size {
		reply["pageToken"] = strconv.Itoa(from + size)
	}
	if q.Federation == "referrals" {
		reply["referrals"] = []any{}
	}
	write(w, http.StatusOK, "application/json", reply)
}

// A match is a card that a search found.
type match struct {
	card  api.Card
	score int
}

func (g *Gateway) find(q query) (found []match, unknown string) {
	words := wordsOf(*q.Query.Text)
	for field, wanted := range q.Query.Filter {
		if _, known := (entry{}).has(field, wanted); !known {
			return nil, strconv.Quote(field)
		}
	}
	for card := range g.o.Agents() {
		score := relevance(card, words)
		if score > 0 && fits(card, q.Query.Filter) {
			found = append(found, match{card, score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return b.score - a.score })
	return found, ""
}

// wordsOf returns the first different words of a text.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if len(words) < maxWords && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

func fits(card api.Card, filter map[string]jsontext.Value) bool {
	if len(filter) == 0 {
		return true
	}
	e := entryOf(card)
	for field, wanted := range filter {
		if ok, _ := e.has(field, wanted); !ok {
			return false
		}
	}
	return true
}

// has tells whether a field has one of the values wanted; false for an unknown field.
func (e entry) has(field string, wanted jsontext.Value) (ok, known bool) {
	var texts []string
	var text string
	switch {
	case json.Unmarshal(wanted, &text) == nil:
		texts = []string{text}
	case json.Unmarshal(wanted, &texts) != nil:
		return false, false
	}
	values, known := map[string][]string{
		"identifier": {e.Identifier}, "displayName": {e.Name}, "type": {e.Type}, "tags": e.Tags, "capabilities": e.Capabilities,
	}[field]
	return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(texts, v) }), known
}

// relevance is the percentage of the words that the card has.
func relevance(card api.Card, words []string) int {
	if len(words) == 0 {
		return 100
	}
	text := card.SearchText()
	has := 0
	for _, word := range words {
		if strings.Contains(text, word) {
			has++
		}
	}
	return 100 * has / len(words)
}

func entryOf(card api.Card) entry {
	shown := public(card)
	e := entry{
		Identifier: identifier(card.Agent), Name: shown.Name, Type: cardType, Data: &shown, Description: shown.Description,
		Capabilities: shown.Capabilities, UpdatedAt: card.Registry.UpdatedAt,
	}
	if e.Name == "" {
		e.Name = string(card.Agent)
	}
	for _, skill := range shown.Skills {
		for _, tag := range skill.Tags {
			if len(e.Tags) < maxTags && !slices.Contains(e.Tags, tag) {
				e.Tags = append(e.Tags, tag)
			}
		}
	}
	return e
}

// public is what an agent says of itself.
func public(card api.Card) api.Card {
	card.Registry = api.Registry{}
	api.Fit(&card, api.MaxRowBytes)
	return card
}

// identifier is an agent's URN, anchored in the domain of its organisation.
func identifier(a performatives.Agent) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(string(a), "agent://"), "/")
	return "urn:air:" + plain(host) + ":agent:" + plain(strings.ReplaceAll(path, "/", "."))
}

// others are the characters that a part of a URN does not have.
var others = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

func plain(part string) string { return others.ReplaceAllString(part, "_") }

// base is the address that the request was sent to.
func base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/"
}

func fail(w http.ResponseWriter, status int, code, message string) {
	write(w, status, "application/json", map[string]string{"errorCode": code, "message": message})
}

func write(w http.ResponseWriter, status int, media string, reply any) {
	data, err := json.Marshal(reply, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"errorCode":"INTERNAL","message":"the reply cannot be written"}`)
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
