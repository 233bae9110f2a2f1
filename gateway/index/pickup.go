package indexgateway

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A negotiation is a turn as Index's clients pick it up.
type negotiation struct {
	ID          performatives.SessionID `json:"negotiationId"`
	Task        performatives.SessionID `json:"taskId"`
	Opportunity *opportunity            `json:"opportunity"` // null if the invitation names none
	Turn        turn                    `json:"turn"`
	Context     Context                 `json:"context"`
}

type opportunity struct {
	ID        jsontext.Value `json:"id"`
	Reasoning jsontext.Value `json:"reasoning"`
	Actors    jsontext.Value `json:"actors"`
	Status    string         `json:"status"`
}

type turn struct {
	Number       uint64 `json:"number"`
	Deadline     string `json:"deadline"`
	History      []past `json:"history"`
	Counterparty string `json:"counterpartyAction"`
}

// past is a turn that was taken.
type past struct {
	Number  uint64  `json:"turnNumber"`
	Agent   string  `json:"agent"` // source or candidate
	Action  string  `json:"action"`
	Message *string `json:"message"`
}

// A Context is what a side may know of a negotiation.
type Context struct {
	Own        jsontext.Value `json:"ownUser"`
	Other      jsontext.Value `json:"otherUser"`
	Index      jsontext.Value `json:"indexContext"`
	Seed       jsontext.Value `json:"seedAssessment"`
	Discoverer bool           `json:"isDiscoverer"`
	Query      jsontext.Value `json:"discoveryQuery,omitzero"`
}

// maxInvitations is how many invitations one pickup accepts.
const maxInvitations = 32

// pickup claims the turn that has waited longest. An agent of Index's knows no invitations:
// one that waits is accepted. A delegation that is offered is the agent's own to accept.
func (c *call) pickup() (any, error) {
	for range maxInvitations {
		var t api.Turn
		err := c.ask(api.TurnPickup.Verb, api.PickUpTurn{Modes: []string{modes.Bilateral.Name}, Joined: true, Worker: c.pass.Worker}, &t)
		if err != nil || t.Claim == nil {
			return nil, err
		}
		if t.View.State > session.Invited {
			return translate(t)
		}
		if err := c.ask(api.TurnRespond.Verb, api.RespondTurn{
			ID: t.Claim.ID, Worker: c.pass.Worker, Performative: performatives.Accept.String(),
			Body: object("referenceId", t.Reference),
		}, &api.Acceptance{}); lost(err) {
			continue // the invitation is over, or another program has accepted it
		} else if err != nil {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // the next pickup goes on
}

// lost tells whether a turn was gone before it was answered.
func lost(err error) bool {
	refusal, is := errors.AsType[*session.Refusal](err)
	return is && api.TurnOf(refusal) == api.TurnGone
}

// translate is a turn in Index's shape.
func translate(t api.Turn) (any, error) {
	var part struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(t.View.ModePart, &part); err != nil {
		return nil, err
	}
	next, _ := t.View.Turn()
	source, _ := Sides(t.View)
	n := negotiation{
		ID: t.Session, Task: t.Session, Opportunity: contextOf(t.Terms).opportunity(part.Status),
		Turn: turn{Number: t.Turn.Number, Deadline: t.Turn.Deadline, History: history(t, source), Counterparty: "none"},
	}
	if taken := n.Turn.History; len(taken) > 0 {
		n.Turn.Counterparty = taken[len(taken)-1].Action
	}
	n.Context = ContextOf(t.View, t.Terms, t.Private, next.Next == source)
	return n, nil
}

// contextOf is the context in the invitation's terms: what it is, is the inviter's to say. The
// seed assessment may stand beside it.
func contextOf(terms jsontext.Value) given {
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
	of := contextOf(terms)
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
	return object("id", string(a))
}

// opportunity is the one that the context names, nil for none.
func (g given) opportunity(status string) *opportunity {
	var o *opportunity
	if v := g["opportunity"]; v.Kind() != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	o.ID, o.Reasoning = or(o.ID, "null"), or(o.Reasoning, "null")
	o.Actors, o.Status = or(o.Actors, "[]"), cmp.Or(o.Status, status)
	return o
}

func or(v jsontext.Value, otherwise string) jsontext.Value {
	if len(v) > 0 || otherwise == "" {
		return v
	}
	return jsontext.Value(otherwise)
}

// object is a JSON object of names and texts.
func object(pairs ...string) jsontext.Value {
	members := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		members[pairs[i]] = pairs[i+1]
	}
	data, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return jsontext.Value("{}") // an id that is not UTF-8, and there is none
	}
	return data
}
