package ardgateway

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
)

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

// entry is an agent's. An agent that speaks A2A is found as such.
func (g *Gateway) entry(card api.Card, base string) entry {
	shown := public(card)
	e := entry{
		Identifier: identifier(card.Agent), Name: shown.Name, Type: cardType, Data: &shown, Description: shown.Description,
		Capabilities: shown.Capabilities, UpdatedAt: card.Registry.UpdatedAt,
	}
	if path := g.o.A2A(card); path != "" {
		e.Type, e.URL, e.Data = a2aType, base+path, nil
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

// public is what an agent says of itself to everybody: its confidentiality context is for its
// own organisation.
func public(card api.Card) api.Card {
	card.Registry, card.CCC = api.Registry{}, nil
	fit.To(&card, api.MaxRowBytes)
	return card
}

// identifier is an agent's URN: the domain of its organisation, and the segments of its path.
func identifier(a performatives.Agent) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(string(a), "agent://"), "/")
	return urn(host, "agent", strings.ReplaceAll(path, "/", ":"))
}

// scheme begins every identifier.
const scheme = "urn:air:"

func urn(host, kind, name string) string {
	return scheme + others.ReplaceAllString(host, "-") + ":" + kind + ":" + name
}

// others are the characters that the domain in a URN does not have.
var others = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

// publisher is the domain in the entry's identifier.
func (e entry) publisher() string {
	domain, _, _ := strings.Cut(strings.TrimPrefix(e.Identifier, scheme), ":")
	return domain
}

// filterable are the fields that a filter takes.
var filterable = []string{"identifier", "displayName", "type", "tags", "capabilities", "publisher"}

// has reports whether a field has one of the values wanted; false for an unknown field.
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
		"publisher": {e.publisher()},
	}[field]
	return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(texts, v) }), known
}
