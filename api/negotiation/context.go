package negotiation

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Context is what a side may know of a negotiation.
type Context struct {
	Own        jsontext.Value `json:"ownUser"`
	Other      jsontext.Value `json:"otherUser"`
	Index      jsontext.Value `json:"indexContext"`
	Seed       jsontext.Value `json:"seedAssessment"`
	Discoverer bool           `json:"isDiscoverer"`
	Query      jsontext.Value `json:"discoveryQuery,omitzero"`
}

// givenIn is the context in the invitation's terms: what it is, is the inviter's to say. The
// seed assessment may stand beside it.
func givenIn(terms jsontext.Value) given {
	var of struct {
		Context given          `json:"context"`
		Seed    jsontext.Value `json:"seedAssessment"`
	}
	if len(terms) == 0 || json.Unmarshal(terms, &of) != nil || of.Context == nil {
		of.Context = given{}
	}
	if len(of.Seed) > 0 && len(of.Context["seedAssessment"]) == 0 {
		of.Context["seedAssessment"] = of.Seed
	}
	return of.Context
}

// ContextOf is what the source, or else the candidate, may know: of the invitation's terms, its
// seed assessment, and what is private to the side.
func ContextOf(view *api.SessionView, terms, private jsontext.Value, ofSource bool) Context {
	var aside struct {
		Query jsontext.Value `json:"discoveryQuery"`
	}
	if len(private) > 0 && json.Unmarshal(private, &aside) != nil {
		aside.Query = nil
	}
	source, candidate := Sides(view)
	of := givenIn(terms)
	c := Context{
		Own: of.user("source", source), Other: of.user("candidate", candidate),
		Index: or(of["indexContext"], `{"networkId":""}`), Seed: or(of["seedAssessment"], "null"),
		Discoverer: ofSource,
	}
	if ofSource {
		c.Query = or(aside.Query, string(of["discoveryQuery"]))
	} else {
		c.Own, c.Other = c.Other, c.Own
	}
	return c
}

// Sides are the inviter and the invitee.
func Sides(v *api.SessionView) (source, candidate performatives.Agent) {
	for _, p := range v.Participants {
		switch p.Role {
		case session.Inviter.String():
			source = p.Agent
		case session.Invitee.String():
			candidate = p.Agent
		}
	}
	return source, candidate
}

// given is the invitation's terms.context.
type given map[string]jsontext.Value

// user is what the context says of a side.
func (g given) user(side string, a performatives.Agent) jsontext.Value {
	own := map[string]string{"source": "ownUser", "candidate": "otherUser"}[side] // as the inviter sees them
	for _, name := range []string{side + "User", side, own} {
		if v := g[name]; len(v) > 0 {
			return v
		}
	}
	id, err := json.Marshal(map[string]performatives.Agent{"id": a})
	if err != nil {
		return jsontext.Value("{}") // unreachable: an agent's URI is UTF-8
	}
	return id
}

// or is a value, or another one if it is absent.
func or(v jsontext.Value, otherwise string) jsontext.Value {
	if len(v) > 0 || otherwise == "" {
		return v
	}
	return jsontext.Value(otherwise)
}

// An Opportunity is what a negotiation is about.
type Opportunity struct {
	ID        jsontext.Value `json:"id"`
	Reasoning jsontext.Value `json:"reasoning"`
	Actors    jsontext.Value `json:"actors"`
	Status    string         `json:"status"`
}

// OpportunityIn is the one that the invitation's terms name, nil for none.
func OpportunityIn(terms jsontext.Value, status string) *Opportunity {
	var o *Opportunity
	if v := givenIn(terms)["opportunity"]; v.Kind() != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	o.ID, o.Reasoning = or(o.ID, "null"), or(o.Reasoning, "null")
	o.Actors, o.Status = or(o.Actors, "[]"), cmp.Or(o.Status, status)
	return o
}
