// Package negotiation reads sessions as Index Network's agents know them: two sides, of which the
// source is the inviter, take turns by five actions.
//
//	for _, turn := range negotiation.Turns(entries, source, &view) { … }
//	request, err := negotiation.Decision{Action: "counter", Assessment: a}.Response(self, view)
//	c := negotiation.ContextOf(&view, terms, private, true)
package negotiation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// Index's actions.
const (
	propose  = "propose"
	counter  = "counter"
	accept   = "accept"
	reject   = "reject"
	question = "question"
)

// A Decision is the body of a response.
type Decision struct {
	Action     string                    `json:"action"`
	Message    string                    `json:"message"`
	Assessment jsontext.Value            `json:"assessment"`
	Terms      map[string]jsontext.Value `json:"terms"` // that an offer changes or adds; Index knows none
}

// Response is what a decision says in a session, as turn.respond takes it. The error is for who
// decided.
func (d Decision) Response(self performatives.Agent, view api.SessionView) (q api.RespondTurn, err error) {
	invited := view.State == session.Invited
	reasoning, err := d.check(invited)
	if err != nil {
		return q, err
	}
	act, body, err := d.act(self, view, reasoning)
	if err != nil {
		return q, err
	}
	q = api.RespondTurn{ID: string(view.Session), Performative: act.String()}
	if act != performatives.Inform {
		q.Message = d.Message
		if !invited { // the answer to an invitation is no turn
			q.Assessment = d.Assessment
		}
	}
	q.Body, err = json.Marshal(body, json.Deterministic(true))
	return q, err
}

var (
	actions = []string{propose, counter, accept, reject, question}
	roles   = []string{"agent", "patient", "peer"}
)

// ErrInvited refuses a turn before the invitation was answered.
var ErrInvited = errors.New("the invitation waits for an answer: accept or reject it")

// check refuses a body that Index would. An invitation is answered without an assessment.
func (d Decision) check(invited bool) (reasoning string, err error) {
	var a struct {
		Reasoning *string `json:"reasoning"`
		Roles     struct {
			Own   string `json:"ownUser"`
			Other string `json:"otherUser"`
		} `json:"suggestedRoles"`
	}
	switch {
	case !slices.Contains(actions, d.Action):
		return "", errors.New("action is one of propose, counter, accept, reject, question")
	case len(d.Terms) > 0 && (d.Action == accept || d.Action == reject):
		return "", fmt.Errorf("%s takes no terms: counter offers other terms", d.Action)
	case invited && d.Action != accept && d.Action != reject:
		return "", ErrInvited
	case invited && len(d.Assessment) == 0:
		return cmp.Or(d.Message, d.Action), nil
	case d.Assessment.Kind() != '{' || json.Unmarshal(d.Assessment, &a) != nil || a.Reasoning == nil || *a.Reasoning == "":
		return "", errors.New("assessment has a reasoning and suggestedRoles")
	case !slices.Contains(roles, a.Roles.Own) || !slices.Contains(roles, a.Roles.Other):
		return "", errors.New("assessment.suggestedRoles has ownUser and otherUser, each agent, patient or peer")
	}
	return *a.Reasoning, nil
}

// act is what an action says in this session. An offer carries the roles, and the terms of the
// offer that it replaces but for those that it names. An offer of one's own that was asked about
// is accepted, answered or amended.
func (d Decision) act(self performatives.Agent, view api.SessionView, reasoning string) (performatives.Performative, map[string]any, error) {
	var offer api.OfferView
	if n := len(view.Proposals); n > 0 {
		offer = view.Proposals[n-1]
	}
	turn, counted := view.Turn()
	if !counted {
		turn.Next = self
	}
	mine := offer.From == turn.Next
	id := fmt.Sprintf("turn-%d", view.Head.Next.Sequence)
	about := cmp.Or(offer.Proposal, view.Invitation.Proposal)
	switch {
	case d.Action == propose:
		terms, err := d.terms(api.OfferView{})
		return performatives.Propose, map[string]any{"proposalId": id, "type": "opportunity", "subject": subject(view), "terms": terms}, err
	case d.Action == accept && mine && offer.Proposal != "" && !acceptsOwn(view, offer):
		given := make([]map[string]string, 0, len(offer.Pending))
		for _, field := range offer.Pending {
			given = append(given, map[string]string{"field": field, "answer": cmp.Or(d.Message, reasoning)})
		}
		return performatives.Inform, map[string]any{"type": performatives.Fact, "data": map[string]any{
			"referenceId": about, "answers": given, "action": accept, "message": d.Message, "assessment": d.Assessment,
		}}, nil
	case d.Action == accept:
		return performatives.Accept, map[string]any{"referenceId": about}, nil
	case d.Action == reject:
		return performatives.Reject, map[string]any{"referenceId": about, "code": "unspecified", "reason": reasoning, "retryable": false}, nil
	case d.Action == question && !mine:
		return performatives.Clarify, map[string]any{
			"referenceId": about, "questions": []map[string]string{{"field": "terms", "question": cmp.Or(d.Message, reasoning)}},
		}, nil
	default:
		terms, err := d.terms(offer)
		body := map[string]any{"proposalId": id, "referenceId": about, "terms": terms}
		if d.Action == question { // of one who was asked: it routes the same as counter
			body["reason"] = question
		}
		return performatives.Counter, body, err
	}
}

var errTooLong = errors.New("the terms of the offer are too long to be countered here: read them whole, and send a COUNTER")

// terms are those of the offer that is replaced, with what the decision names.
func (d Decision) terms(of api.OfferView) (map[string]jsontext.Value, error) {
	terms := map[string]jsontext.Value{}
	if of.Truncated {
		return nil, errTooLong
	}
	if len(of.Terms) > 0 {
		if err := json.Unmarshal(of.Terms, &terms); err != nil {
			return nil, err
		}
	}
	maps.Copy(terms, d.Terms)
	terms["assessment"] = d.Assessment
	return terms, nil
}

// acceptsOwn reports whether a side may accept its own offer: it was asked about it in bilateral/1,
// and nobody else has to agree.
func acceptsOwn(view api.SessionView, offer api.OfferView) bool {
	var agreed struct {
		Policy struct {
			Confirm      bool `json:"confirm"`
			StandingOnly bool `json:"acceptStandingOnly"`
		} `json:"policy"`
	}
	if view.Mode != modes.Bilateral.Name || json.Unmarshal(view.Invitation.Terms, &agreed) != nil {
		return false
	}
	return len(offer.Pending) > 0 && !agreed.Policy.Confirm && !agreed.Policy.StandingOnly
}

func subject(view api.SessionView) string { return cmp.Or(view.Invitation.Subject, "opportunity") }

// A Taken is an entry that took a turn.
type Taken struct {
	Entry      api.TurnEntry
	Side       string // source or candidate
	Action     string
	Message    *string
	Assessment jsontext.Value
}

// Turns are the turns among entries of a session: what State.Turns counts, as far as the entries and
// the view tell. In bilateral/1 those that carry an assessment are.
func Turns(entries []api.TurnEntry, source performatives.Agent, view *api.SessionView) []Taken {
	taken, offered := []Taken{}, map[string]bool{}
	for _, o := range view.Proposals {
		offered[o.Proposal] = true
	}
	for _, e := range entries {
		of, err := read(e)
		if err != nil {
			continue
		}
		switch of.action {
		case "":
			continue
		case propose, counter:
			offered[of.Proposal] = true
		case accept, reject, question:
			if !offered[of.Reference] {
				continue
			}
		case answers:
			if data, ok := of.inform.Answers(); !ok || data.ReferenceID == view.Invitation.Proposal {
				continue
			}
		}
		if of.action == answers || len(of.Assessment) > 0 || view.Mode != modes.Bilateral.Name {
			taken = append(taken, of.taken(e, source))
		}
	}
	return taken
}

// TakenBy is the turn that an entry took, of which the broker says that it took one.
func TakenBy(e api.TurnEntry, source performatives.Agent) (Taken, error) {
	of, err := read(e)
	return of.taken(e, source), err
}

// said is the body of an entry, and its action.
type said struct {
	Proposal   string         `json:"proposalId"`
	Reference  string         `json:"referenceId"`
	Reason     string         `json:"reason"`
	Message    *string        `json:"message"`
	Assessment jsontext.Value `json:"assessment"`

	action string
	inform performatives.InformBody
}

func read(e api.TurnEntry) (of said, err error) {
	of.action = actionOf[performatives.Parse(e.Performative)]
	if of.action == answers {
		return of, json.Unmarshal(e.Body, &of.inform)
	}
	return of, json.Unmarshal(e.Body, &of)
}

func (s said) taken(e api.TurnEntry, source performatives.Agent) Taken {
	turn := Taken{Entry: e, Side: "candidate", Action: s.action, Message: s.Message, Assessment: s.Assessment}
	if e.From == source || e.OnBehalfOf == source {
		turn.Side = "source"
	}
	switch {
	case s.action == answers:
		var data struct {
			Action     string         `json:"action"`
			Message    *string        `json:"message"`
			Assessment jsontext.Value `json:"assessment"`
		}
		if json.Unmarshal(s.inform.Data, &data) != nil {
			data.Message = nil // it is of another type
		}
		turn.Action, turn.Message, turn.Assessment = counter, data.Message, data.Assessment
		if data.Action == accept {
			turn.Action = accept
		}
	case s.action == counter && s.Reason == question:
		turn.Action = question
	}
	return turn
}

// answers is the action of an INFORM.
const answers = "answers"

var actionOf = map[performatives.Performative]string{
	performatives.Propose: propose, performatives.Counter: counter, performatives.Accept: accept, performatives.Reject: reject,
	performatives.Clarify: question, performatives.Inform: answers,
}
