package mcpgateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/negotiation"
	"github.com/parley-asp/parley/api/render"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A turn is one that was taken.
type turn struct {
	Number    uint64                    `json:"turnNumber"`
	Speaker   string                    `json:"speaker"`
	Sender    act.Agent                 `json:"senderId"`
	Quoted    bool                      `json:"quoted"`
	Action    string                    `json:"action"`
	Reasoning *string                   `json:"reasoning"`
	Roles     jsontext.Value            `json:"suggestedRoles"`
	Whole     jsontext.Value            `json:"assessment"`
	Message   *string                   `json:"message"`
	Terms     map[string]jsontext.Value `json:"terms,omitempty"` // of an offer
	Created   string                    `json:"createdAt"`
}

// negotiation reads one, with the newest of its turns.
func (c *call) negotiation(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		ID act.SessionID `json:"negotiationId"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	view, err := ask(ctx, c, api.SessionGet, api.GetSession{Session: q.ID})
	if err != nil {
		return result{}, err
	}
	now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: q.ID})
	if err != nil {
		return result{}, err
	}
	said, err := c.newest(ctx, &view)
	if err != nil {
		return result{}, err
	}
	c.showsEntries(q.ID, said)
	source, candidate := negotiation.Sides(&view)
	mine := source == c.Agent() || now.You.OnBehalfOf == source
	turns := []turn{}
	taken := negotiation.Turns(begun(said), source, &view)
	earlier := view.Turns - min(view.Turns, uint64(len(taken)))
	for i, t := range taken {
		turns = append(turns, c.turnOf(earlier+uint64(i)+1, t))
	}
	part := struct {
		Outcome jsontext.Value `json:"outcome"`
	}{jsontext.Value("null")}
	if len(view.ModePart) > 0 && json.Unmarshal(view.ModePart, &part) != nil {
		part.Outcome = jsontext.Value("null")
	}
	data := struct {
		ID           act.SessionID       `json:"id"`
		Status       string              `json:"status"`
		Role         string              `json:"role"`
		Counterparty act.Agent           `json:"counterpartyId"`
		Mode         string              `json:"mode"`
		State        string              `json:"state"`
		Count        uint64              `json:"turnCount"`
		Yours        bool                `json:"isUsersTurn"`
		Turns        []turn              `json:"turns"`
		Outcome      jsontext.Value      `json:"outcome"`
		Context      negotiation.Context `json:"context"`
		Created      string              `json:"createdAt"`
		Updated      string              `json:"updatedAt"`
		Publish      jsontext.Value      `json:"publish,omitzero"` // as in the view
		Consent      string              `json:"consent,omitzero"` // in words
		Notice       string              `json:"notice"`
	}{
		ID: q.ID, Role: "candidate", Counterparty: source, Mode: view.Mode, State: view.State.String(), Count: view.Turns, Yours: now.Waiting != nil && now.Waiting.Yours,
		Turns: turns, Outcome: part.Outcome, Created: view.Created, Updated: view.Updated, Notice: notice, Publish: view.Publish, Consent: render.Consents(view.Publish),
	}
	data.Status = statusOf(view.State, data.Yours)
	if mine {
		data.Role, data.Counterparty = "source", candidate
	}
	data.Context = negotiation.ContextOf(&view, view.Invitation.Terms, now.Private, mine)
	return result{value: success{true, data}}, nil
}

// newest are the last entries of a session as the view has it, as many as one page has room for.
func (c *call) newest(ctx context.Context, view *api.SessionView) (said []entry, err error) {
	end := view.Head.Next.Sequence
	since := end - min(end, maxEntries)
	for next := &since; next != nil && *next < end; {
		page, err := ask(ctx, c, api.SessionMessages, api.ListMessages{Session: view.Session, Since: *next, Limit: int(end - *next)}) //nolint:gosec // at most maxEntries
		if err != nil {
			return nil, err
		}
		more, err := c.entries(page)
		if err != nil {
			return nil, err
		}
		said, next = append(said, more...), page.Next
	}
	size := 0
	for i, e := range slices.Backward(said) {
		if size += len(e.Body); size > api.MaxPageBytes {
			return said[i+1:], nil
		}
	}
	return said, nil
}

func (c *call) turnOf(number uint64, t negotiation.Taken) turn {
	one := turn{
		Number: number, Speaker: t.Side, Sender: t.Entry.From, Quoted: t.Entry.From != c.Agent(), Action: t.Action,
		Message: t.Message, Terms: termsOf(t), Created: t.Entry.At, Roles: jsontext.Value("null"), Whole: jsontext.Value("null"),
	}
	var of struct {
		Reasoning *string        `json:"reasoning"`
		Roles     jsontext.Value `json:"suggestedRoles"`
	}
	if len(t.Assessment) > 0 && json.Unmarshal(t.Assessment, &of) == nil {
		one.Reasoning, one.Whole = of.Reasoning, t.Assessment
		if len(of.Roles) > 0 {
			one.Roles = of.Roles
		}
	}
	return one
}

// termsOf are those of an offer without its assessment, which a turn has by itself; nil for none.
func termsOf(t negotiation.Taken) map[string]jsontext.Value {
	var of struct {
		Terms map[string]jsontext.Value `json:"terms"`
	}
	if json.Unmarshal(t.Entry.Body, &of) != nil {
		return nil
	}
	delete(of.Terms, "assessment")
	return of.Terms
}

// respond takes a turn. One that nobody has claimed is claimed for this client.
func (c *call) respond(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		ID        act.SessionID             `json:"negotiationId"`
		Action    string                    `json:"action"`
		Reasoning string                    `json:"reasoning"`
		Roles     jsontext.Value            `json:"suggestedRoles"`
		Message   string                    `json:"message"`
		Terms     map[string]jsontext.Value `json:"terms"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	last := c.lastSeen(q.ID)
	if len(q.Roles) == 0 {
		q.Roles = jsontext.Value("null")
	}
	assessment, err := json.Marshal(map[string]any{"reasoning": q.Reasoning, "suggestedRoles": q.Roles}, json.Deterministic(true))
	if err != nil {
		return result{}, err
	}
	view, err := ask(ctx, c, api.SessionGet, api.GetSession{Session: q.ID})
	if err != nil {
		return result{}, err
	}
	response, err := negotiation.Decision{Action: q.Action, Message: q.Message, Assessment: assessment, Terms: q.Terms}.Response(c.Agent(), view)
	if err != nil {
		return result{}, session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	if err := c.answersShown(ctx, q.ID, response, last); err != nil {
		return result{}, err
	}
	if _, err := ask(ctx, c, api.TurnPickup, api.PickUpTurn{Session: q.ID, Worker: c.Worker()}); err != nil {
		return result{}, err
	}
	response.Worker = c.Worker()
	accepted, err := c.Respond(ctx, response)
	if err != nil {
		return result{}, err
	}
	return result{value: success{true, map[string]any{
		"negotiationId": q.ID, "action": q.Action, "state": accepted.State, "messageId": accepted.Message, "sequenceNumber": accepted.Sequence,
	}}}, nil
}
