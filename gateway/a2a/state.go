package a2agateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// waiting are the offers of any kind that wait for an answer of the caller, oldest first; all
// are those that wait for an answer of anybody.
func (s snapshot) waiting(caller performatives.Agent) (waiting []string, all int) {
	for _, o := range s.deal.Open {
		if !slices.Contains(gateway.Offered, o.Kind) {
			continue
		}
		all++
		if slices.Contains(o.For, caller) {
			waiting = append(waiting, o.ID)
		}
	}
	return waiting, all
}

// delivered are what ACCEPT and REJECT of deliveries to the caller name.
func (s snapshot) delivered(caller performatives.Agent) (waiting []string) {
	for _, o := range s.deal.Obligations {
		if o.Delivery != nil && slices.Contains(o.To, caller) {
			waiting = append(waiting, o.Delivery.Reference)
		}
	}
	return waiting
}

// A question is what the caller may answer now, as its move has it.
type question struct {
	Reference string `json:"referenceId"`
	Answers   []struct {
		Field string `json:"field"`
	} `json:"answers"`
}

// asked is the newest question that the caller may answer.
func (s snapshot) asked() (q question) {
	for _, m := range s.deal.Moves {
		var body struct {
			Data question `json:"data"`
		}
		if m.Performative == performatives.Inform.String() && json.Unmarshal(m.Body, &body) == nil && len(body.Data.Answers) > 0 {
			q = body.Data
		}
	}
	return q
}

// rejected reports whether the last word on the task's newest offer, or on the invitation, was a REJECT.
func (s snapshot) rejected() bool {
	offers := s.view.Proposals
	return s.view.Closing == "rejected" || s.view.Invitation.Status == "rejected" || len(offers) > 0 && offers[len(offers)-1].Sequence >= s.first && offers[len(offers)-1].Status == "rejected"
}

// state is the task's state for a caller (GATEWAYS.md G7).
func (s snapshot) state(caller performatives.Agent) a2a.TaskState {
	_, open := s.waiting(caller)
	switch {
	case s.over:
		return a2a.TaskStateCompleted
	case s.view.State == session.Escalated:
		return a2a.TaskStateAuthRequired
	case s.view.State.Over() && s.agreed():
		return a2a.TaskStateCompleted
	case s.view.State.Over() && s.rejected():
		return a2a.TaskStateRejected
	case s.view.State == session.Failed:
		return a2a.TaskStateFailed
	case s.view.State == session.Closed:
		return a2a.TaskStateCanceled
	case s.held:
		return a2a.TaskStateWorking
	case s.deal.Waiting != nil && s.deal.Waiting.Yours:
		return a2a.TaskStateInputRequired
	case open > 0, s.deal.Waiting != nil, s.view.State == session.Executing:
		return a2a.TaskStateWorking
	case s.last() == caller:
		return a2a.TaskStateWorking
	default:
		return a2a.TaskStateInputRequired
	}
}

// last is who spoke last.
func (s snapshot) last() performatives.Agent {
	if len(s.entries) == 0 {
		return ""
	}
	return s.entries[len(s.entries)-1].From
}

// status says where the task stands, and what the caller may do about it.
func (s snapshot) status(c call) a2a.TaskStatus {
	state := s.state(c.Agent)
	status := a2a.TaskStatus{State: state}
	when := s.view.Updated
	if e, has := s.ending(); has {
		when = e.At
	}
	if at, err := time.Parse(time.RFC3339, when); err == nil {
		status.Timestamp = &at
	}
	text, data := s.explain(c, state)
	if s.refused != nil {
		text, data["refused"] = "Your first message was refused: "+strings.TrimSuffix(s.refused.Message, ".")+". "+text, plain(s.refused)
	}
	data["sessionId"], data["state"] = string(s.view.Session), s.phase()
	status.Message = &a2a.Message{
		ID: fmt.Sprintf("%s/%d", s.view.Session, s.end), ContextID: string(s.view.Session), TaskID: s.id(), Role: a2a.MessageRoleAgent,
		Parts: a2a.ContentParts{{Content: a2a.Text(text), MediaType: textType}, {Content: a2a.Data{Value: data}, MediaType: jsonType}},
	}
	return status
}

// ending is the entry that ended the task while the session went on.
func (s snapshot) ending() (api.Entry, bool) {
	if !s.over || len(s.entries) == 0 {
		return api.Entry{}, false
	}
	return s.entries[len(s.entries)-1], true
}

// phase is the session's state, of a task that is over what it was then.
func (s snapshot) phase() string {
	if e, has := s.ending(); has {
		return e.Receipt.State
	}
	return s.view.State.String()
}

// concludedOn is the sentence of the offer that was accepted last in a task that is over, made of the entries alone:
// it does not change with the session. "" if a commitment was, or the offer is too long ago.
func (s snapshot) concludedOn() string {
	for _, e := range slices.Backward(s.entries) {
		var answer struct {
			Reference string `json:"referenceId"`
		}
		if e.Performative != performatives.Accept.String() || json.Unmarshal(e.Body, &answer) != nil {
			continue
		}
		for _, offer := range slices.Backward(s.entries) {
			var body struct {
				ID         string         `json:"proposalId"`
				Commitment string         `json:"commitmentId"`
				Terms      jsontext.Value `json:"terms"`
			}
			if json.Unmarshal(offer.Body, &body) != nil || body.ID+body.Commitment == "" || body.ID != answer.Reference && body.Commitment != answer.Reference {
				continue
			}
			if body.ID == "" {
				return ""
			}
			deal := api.Snapshot{You: s.deal.You, Offers: []api.SnapshotOffer{{ID: body.ID, By: cmp.Or(offer.OnBehalfOf, offer.From), Terms: body.Terms, Status: "accepted"}}}
			render.Say(&deal)
			return deal.Offers[0].Text
		}
	}
	return ""
}

// explain is the status in a sentence, and for programs.
func (s snapshot) explain(c call, state a2a.TaskState) (string, object) {
	switch state {
	case a2a.TaskStateAuthRequired:
		if e := s.view.Escalation; e != nil {
			return fmt.Sprintf("A human of %s decides about it by %s; nothing else is allowed until then.", e.Organisation, e.Deadline),
				object{"escalationId": string(e.ID), "organisation": string(e.Organisation), "deadline": e.Deadline, "urgency": e.Urgency}
		}
	case a2a.TaskStateInputRequired:
		return s.asks(c)
	case a2a.TaskStateWorking:
		switch s.view.State { //nolint:exhaustive // in the others it is a turn
		case session.Invited:
			return "The invitation waits for " + string(c.to) + ".", object{}
		case session.Executing:
			said := append([]string{"What was agreed is carried out."}, s.says(func(api.OpenItem) bool { return true })...)
			return strings.Join(said, " "), object{"allowed": s.acts()}
		}
		return "It is the turn of " + string(c.to) + ".", object{}
	case a2a.TaskStateCompleted:
		if text := s.concludedOn(); s.over && text != "" { // by an ACCEPT after which the session goes on
			return "The offer is accepted: " + text + ". That binds nobody yet: a COMMIT that is accepted does, in the context's next task.", object{}
		}
		if s.deal.Agreed != nil && !s.over {
			return "There is an agreement: " + s.deal.Agreed.Text + ".", object{}
		}
		return "There is an agreement.", object{}
	case a2a.TaskStateFailed, a2a.TaskStateRejected, a2a.TaskStateCanceled:
		return "The session is over without an agreement: " + s.view.Closing + ".", object{"reason": s.view.Closing}
	case a2a.TaskStateSubmitted, a2a.TaskStateUnspecified:
	}
	return "The session is " + s.view.State.String() + ".", object{}
}

// asks says what waits for the caller, and what it may send.
func (s snapshot) asks(c call) (string, object) {
	acts := s.acts()
	data, said := object{"allowed": acts, "moves": plain(s.deal.Moves)}, []string{"It is your turn."}
	if waiting, _ := s.waiting(c.Agent); len(waiting) > 0 {
		data["waiting"] = waiting
		data["offers"] = plain(slices.DeleteFunc(slices.Clone(s.deal.Offers), func(o api.SnapshotOffer) bool { return !slices.Contains(waiting, o.ID) }))
	}
	if delivered := s.delivered(c.Agent); len(delivered) > 0 {
		data["delivered"] = delivered
	}
	if asked := s.asked(); asked.Reference != "" {
		fields := []string{}
		for _, a := range asked.Answers {
			fields = append(fields, a.Field)
		}
		data["asked"] = fields
	}
	said = append(said, s.says(func(o api.OpenItem) bool { return slices.Contains(o.For, c.Agent) })...)
	if consent := render.Consents(s.view.Publish); consent != "" {
		said, data["publish"] = append(said, consent), s.view.Publish
	}
	said = append(said, `Answer in words, or with {"action": …}, one of `+strings.ToLower(strings.Join(acts, ", "))+".")
	return strings.Join(said, " "), data
}

// plain is a value as JSON is read.
func plain(value any) (read any) {
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &read) != nil {
		return nil
	}
	return read
}

// says are the sentences of what is open.
func (s snapshot) says(which func(api.OpenItem) bool) (said []string) {
	for _, o := range s.deal.Open {
		if which(o) {
			said = append(said, o.ID+": "+o.Text+".")
		}
	}
	return said
}

// acts are what the caller may send now.
func (s snapshot) acts() []string {
	names := []string{}
	for _, m := range s.deal.Moves {
		if !slices.Contains(names, m.Performative) {
			names = append(names, m.Performative)
		}
	}
	return names
}

func id(o api.OfferView) string {
	if o.Commitment != "" {
		return o.Commitment
	}
	return o.Proposal
}

// artifacts are what came of the session: its outcome once the task is over, and its agreements.
func (g *Gateway) artifacts(ctx context.Context, c call, s snapshot) (all []*a2a.Artifact, err error) {
	if s.state(c.Agent).Terminal() {
		outcome := object{"state": s.phase(), "agreed": s.agreed(), "mode": s.view.Mode}
		if s.view.Closing != "" && !s.over {
			outcome["reason"] = s.view.Closing
		}
		var part any
		if !s.over && len(s.view.ModePart) > 0 && json.Unmarshal(s.view.ModePart, &part) == nil {
			outcome["result"] = part
		}
		all = append(all, artifact("outcome", "What came of the session.", outcome))
	}
	if !s.agreed() {
		return all, nil
	}
	rows := s.agreements
	if rows == nil {
		if rows, err = c.agreements(ctx, s.view.Session); err != nil {
			return nil, err
		}
	}
	agreements := 0
	for _, row := range rows {
		if !s.made(row) {
			continue
		}
		var document object
		err := c.Call(ctx, api.AgreementGet.Verb, api.GetAgreement{Agreement: row.Agreement}, &document)
		if _, refused := errors.AsType[*session.Refusal](err); refused {
			continue // one that cannot be shown, such as with terms that are too long
		}
		if err != nil {
			return nil, err
		}
		delete(document, "log") // its position in the public log, which comes later, and which agreement.get has
		one := artifact("agreement", "The agreement as a document that proves itself.", document)
		if agreements++; agreements > 1 {
			one.ID = a2a.ArtifactID(fmt.Sprintf("agreement-%d", agreements))
		}
		all = append(all, one)
	}
	return all, nil
}

func artifact(name, description string, data object) *a2a.Artifact {
	return &a2a.Artifact{
		ID: a2a.ArtifactID(name), Name: name, Description: description, Extensions: []string{Extension},
		Parts: a2a.ContentParts{{Content: a2a.Data{Value: data}, MediaType: jsonType}},
	}
}
