package mcpgateway

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A result is what a tool answers: a value for programs, and a text for a model. Without a text
// the value is shown, as JSON; a tool without an output schema answers that alone.
type result struct {
	value any
	text  string
}

func (r result) encode(structure bool) (*mcp.CallToolResult, error) {
	data, err := json.Marshal(r.value, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	structured, err := visible(data)
	if err != nil {
		return nil, err
	}
	if r.text == "" {
		r.text = spelt(structured)
	}
	answer := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.text}}}
	if structure {
		answer.StructuredContent = stdjson.RawMessage(structured)
	}
	return answer, nil
}

// A failure is a refusal as a tool's result.
type failure struct {
	Success *bool    `json:"success,omitzero"`
	Error   any      `json:"error"`
	Code    any      `json:"code,omitzero"`
	State   string   `json:"state,omitzero"`   // that the session is in
	Allowed []string `json:"allowed,omitzero"` // tools that are allowed in it; of the kit, moves
	Now     *view    `json:"now,omitzero"`     // what to decide on anew, as it went on
}

// refused is a refusal as a model can act on it. It comes as text alone: clients hold a value to
// the schema of what is accepted.
func (c *call) refused(ctx context.Context, t tool, args jsontext.Value, err error) *mcp.CallToolResult {
	refusal := c.refusal(err)
	e := api.Refused(refusal).Error
	f := failure{Error: e}
	if t.plain {
		no := false
		f = failure{Success: &no, Error: e.Message, Code: e.Code}
	}
	if now := c.stands(ctx, args, refusal); now != nil {
		f.State, f.Allowed = now.State.String(), toolsFor(now.Moves)
		if t.moves {
			f.Allowed = actionsOf(now.Moves)
		}
		if t.plain && refusal.Code == session.ChainConflict {
			if v, err := c.viewOf(now, false); err == nil {
				f.Now = &v
			}
		}
	}
	data, err := json.Marshal(f, json.Deterministic(true))
	if err == nil {
		data, err = visible(data)
	}
	if err != nil {
		data = jsontext.Value(`{"error":"unavailable"}`)
	}
	text := spelt(data)
	if !t.plain {
		text = "Refused (" + string(e.Code) + "): " + render.Clean(e.Message) + "\n" + text
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// stands is the session that a call was about, where its state had the call refused; nil for others.
func (c *call) stands(ctx context.Context, args jsontext.Value, refusal *session.Refusal) *api.Snapshot {
	var of struct {
		Session     performatives.SessionID `json:"sessionId"`
		Negotiation performatives.SessionID `json:"negotiationId"`
	}
	switch refusal.Code {
	case session.WrongState, session.WrongTurn, session.ProposalNotOpen, session.ProposalUnknown, session.OwnProposal, session.ClarificationPending,
		session.SessionEscalated, session.ChainConflict, session.ModeViolation, session.SchemaInvalid, session.AuthorityExceeded:
	default:
		return nil
	}
	if json.Unmarshal(args, &of) != nil {
		return nil
	}
	now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: cmp.Or(of.Session, of.Negotiation)})
	if err != nil {
		return nil
	}
	return &now
}

// toolsFor are the tools that say moves, and those that only look.
func toolsFor(moves []api.Move) []string {
	allowed := []string{}
	for _, m := range moves {
		if name := toolOf[performatives.Parse(m.Performative)]; name != "" && !slices.Contains(allowed, name) {
			allowed = append(allowed, name)
		}
	}
	return append(allowed, api.TurnWait.Tool, api.SessionMessages.Tool)
}

// toolOf names the tool that says an act.
var toolOf = map[performatives.Performative]string{
	performatives.Propose: "propose", performatives.Counter: "counter", performatives.Accept: "accept", performatives.Reject: "reject",
	performatives.Query: "ask", performatives.Clarify: "ask", performatives.Inform: "answer", performatives.Commit: "commit",
	performatives.Delegate: "delegate", performatives.Escalate: "escalate", performatives.Withdraw: "withdraw", performatives.Close: "close",
}
