package indexgateway

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/negotiation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// A pickedUp is a turn as Index's clients pick it up.
type pickedUp struct {
	ID          performatives.SessionID  `json:"negotiationId"`
	Task        performatives.SessionID  `json:"taskId"`
	Opportunity *negotiation.Opportunity `json:"opportunity"` // null if the invitation names none
	Turn        turn                     `json:"turn"`
	Context     negotiation.Context      `json:"context"`
}

type turn struct {
	Number       uint64 `json:"number"`
	Deadline     string `json:"deadline"`
	History      []past `json:"history"`
	Counterparty string `json:"counterpartyAction"`
}

// past is a turn that was taken.
type past struct {
	Number     uint64         `json:"turnNumber"`
	Agent      string         `json:"agent"` // source or candidate
	Action     string         `json:"action"`
	Message    *string        `json:"message"`
	Assessment jsontext.Value `json:"assessment,omitzero"` // {reasoning, suggestedRoles} as its agent gave it
}

// maxInvitations is how many invitations one pickup accepts.
const maxInvitations = 32

// pickup claims the turn that has waited longest. An agent of Index's knows no invitations:
// one that waits is accepted in advance, or declined if its card forbids the session. What Index's
// shape does not show is the agent's own to accept: a delegation, and what goes beyond words.
func (c *call) pickup() (any, error) {
	for range maxInvitations {
		var t api.Turn
		err := c.Call(c.r.Context(), api.TurnPickup.Verb, api.PickUpTurn{Modes: []string{modes.Bilateral.Name}, Joined: true, Worker: c.Worker}, &t)
		if err != nil || t.Claim == nil {
			return nil, err
		}
		if t.View.State > session.Invited {
			return translate(t)
		}
		err = c.answer(t, performatives.Accept, map[string]any{"referenceId": t.Reference, "inAdvance": true})
		if errors.Is(err, &session.Refusal{Code: session.ModeViolation}) {
			err = c.answer(t, performatives.Reject, map[string]any{"referenceId": t.Reference, "code": "unspecified", "reason": "declined", "retryable": false})
		}
		if err != nil && !lost(err) { // the invitation is over, or another program has answered it
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // the next pickup goes on
}

// answer answers an invitation.
func (c *call) answer(t api.Turn, act performatives.Performative, said map[string]any) error {
	body, err := json.Marshal(said, json.Deterministic(true))
	if err != nil {
		return err
	}
	return c.Call(c.r.Context(), api.TurnRespond.Verb, api.RespondTurn{
		ID: t.Claim.ID, Worker: c.Worker, Performative: act.String(), Body: body,
	}, &api.Acceptance{})
}

// lost reports whether a turn was gone before it was answered.
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
	source, _ := negotiation.Sides(t.View)
	n := pickedUp{
		ID: t.Session, Task: t.Session, Opportunity: negotiation.OpportunityIn(t.Terms, part.Status),
		Turn: turn{Number: t.Turn.Number, Deadline: t.Turn.Deadline, History: history(t, source), Counterparty: "none"},
	}
	if taken := n.Turn.History; len(taken) > 0 {
		n.Turn.Counterparty = taken[len(taken)-1].Action
	}
	n.Context = negotiation.ContextOf(t.View, t.Terms, t.Private, next.Next == source)
	return n, nil
}

// history are the turns that were taken, as far as the turn shows them.
func history(t api.Turn, source performatives.Agent) []past {
	turns := []past{}
	for _, taken := range negotiation.Turns(t.History, source, t.View) {
		turns = append(turns, past{Agent: taken.Side, Action: taken.Action, Message: taken.Message, Assessment: taken.Assessment})
	}
	earlier := t.Turn.Number - min(t.Turn.Number, uint64(len(turns)))
	for i := range turns {
		turns[i].Number = earlier + uint64(i)
	}
	return turns
}

// respond answers a claimed turn.
func (c *call) respond() (any, error) {
	var d negotiation.Decision
	if err := c.read(&d); err != nil {
		return nil, err
	}
	view, err := c.View(c.r.Context(), performatives.SessionID(c.r.PathValue("negotiationId")))
	if err != nil {
		return nil, err
	}
	request, err := d.Response(c.Agent, view)
	switch {
	case errors.Is(err, negotiation.ErrInvited):
		return nil, problem{http.StatusConflict, err.Error()}
	case err != nil:
		return nil, problem{http.StatusBadRequest, err.Error()}
	case request.Performative != performatives.Reject.String() && beyondWords(view):
		return nil, problem{http.StatusConflict, "an answer may agree to obligations or to a publication, which are not shown here: read and answer it at /v1/asp/sessions/" + string(view.Session) + ", or reject it"}
	}
	request.Worker = c.Worker
	if err := c.Call(c.r.Context(), api.TurnRespond.Verb, request, &api.Acceptance{}); err != nil {
		return nil, err
	}
	return map[string]bool{"success": true}, nil
}

// beyondWords reports whether an answer to the newest offer may agree to more than words.
func beyondWords(view api.SessionView) bool {
	var offer jsontext.Value
	if n := len(view.Proposals); n > 0 {
		offer = view.Proposals[n-1].Terms
	}
	return api.BeyondWords(view.Invitation.Terms, offer)
}
