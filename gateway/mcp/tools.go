package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A tool is one row of the table of tools.
type tool struct {
	name, title, doc string
	hints            hints
	input, output    object
	run              func(*call, context.Context, jsontext.Value) (result, error)
	plain            bool // as Index has it: a failure is {success: false, error}
	moves            bool // of the kit, whose tool for every act is respond_to_negotiation
}

// hints say what a call of a tool does.
type hints int

const (
	reads   hints = iota // changes nothing
	adds                 // adds to what is said; a repeat without idempotencyKey adds again
	binds                // cannot be taken back; a repeat is refused
	repeats              // adds nothing when it is repeated
)

// tools are those of a kit, in the order in which clients list them.
func tools(all bool) []tool {
	if all {
		return everyTool()
	}
	return kit()
}

// everyTool is the table of all tools.
func everyTool() []tool {
	return append(negotiations(), []tool{
		{
			name: api.AgentSearch.Tool, title: "Find agents", hints: reads, run: (*call).findAgents, input: findInput, output: findOutput,
			doc: "Find agents to negotiate with: by a task (ranked by how well each says it fits), or by capability, words, organisation and trust.",
		},
		{
			name: "open_session", title: "Open a session", hints: adds, run: (*call).open, input: openInput(), output: acceptance(nil),
			doc: "Invite one or more agents to negotiate. They accept or reject; then make an offer with propose. Use wait_for_turn to hear their answer.",
		},
		says("propose", "Make an offer", adds, act.Propose, "Make an offer in a session. The terms are yours to choose within your mandate.", "proposalId"),
		says("counter", "Counter an offer", adds, act.Counter, "Replace the other side's open offer by one of your own. referenceId is the offer you answer.", "proposalId"),
		says("accept", "Accept", binds, act.Accept, "Accept an invitation, offer, commitment or delegation: referenceId names it. This binds your principal."),
		says("reject", "Reject", binds, act.Reject, "Reject an invitation, offer, commitment or delegation, with a code and a reason."),
		{
			name: "ask", title: "Ask", hints: adds, run: (*call).question, output: acceptance(nil),
			input: closed(inSession(ofBodies(nil, act.Clarify, act.Query))),
			doc:   "Ask the other side. With referenceId and questions: about fields of its offer, such as terms.price (CLARIFY), which cannot be accepted until it answers. With subject and queryType: about anything else (QUERY).",
		},
		{
			name: "answer", title: "Answer", hints: adds, run: (*call).inform, output: acceptance(nil),
			input: closed(inSession(object{
				"referenceId?": text("the offer that was asked about, or the queryId"),
				"answers?":     list(closed(object{"field": text("as in the question"), "answer": object{}})),
				"type?":        enum("by default fact with answers, else result", act.Fact, act.Result, act.ErrorReport, act.Progress),
				"data?":        object{"description": "any information, if it is not answers to a question about an offer"},
			})),
			doc: "Answer questions about your offer, field by field, or tell the other side something (INFORM).",
		},
		says("commit", "Commit", binds, act.Commit, "Commit to obligations that carry out an accepted offer. This binds your principal.", "commitmentId"),
		says("delegate", "Delegate", adds, act.Delegate, "Let another agent act in this session for your principal, within bounds."),
		{
			name: "escalate", title: "Escalate to a human", hints: adds, run: (*call).escalate, output: escalateOutput,
			input: closed(inSession(ofBodies(nil, act.Escalate))),
			doc:   "Pause the session until a human of your organisation has decided. It answers at once with who is asked and until when; wait_for_turn brings the ruling. No agent can decide it.",
		},
		says("withdraw", "Withdraw", binds, act.Withdraw, "Take back your own open offer, commitment, question or delegation."),
		says("close", "Close the session", binds, act.Close, "End the session."),
		{
			name: api.TurnWait.Tool, title: "Wait for a turn", hints: reads, run: (*call).wait, input: waitInput, output: waitOutput,
			doc: "Wait, at most 50 seconds, for what you were not given: a turn that waits for you, or news such as the ruling on an escalation, in one session or in any. Pass the cursor of the answer as since of the next call.",
		},
		{
			name: api.SessionMessages.Tool, title: "Read a transcript", hints: reads, run: (*call).transcript, input: transcriptInput, output: transcriptOutput,
			doc: "Read what was said in a session, in order, page by page.",
		},
		{
			name: "verify_transcript", title: "Verify a transcript", hints: reads, run: (*call).verify, output: verifyOutput,
			input: closed(object{"sessionId": text("")}),
			doc:   "Check every signature, hash and receipt of a session's transcript.",
		},
	}...)
}

// says is a tool that says one act, whose members are those of the act's body.
func says(name, title string, h hints, p act.Performative, doc string, optional ...string) tool {
	return tool{
		name: name, title: title, doc: doc, hints: h, output: acceptance(nil),
		input: closed(inSession(ofBodies(optional, p))),
		run: func(c *call, ctx context.Context, args jsontext.Value) (result, error) {
			return c.act(ctx, p, args)
		},
	}
}

// inSession adds what all acts take.
func inSession(members object) object {
	all := maps.Clone(members)
	all["sessionId"] = text("the session")
	all["recipient?"] = text("whom it is for, agent://…; by default everybody in the session")
	all[keyMember+"?"] = keySchema
	return all
}

// describe is the tool as clients list it.
func (t tool) describe() *mcp.Tool {
	no, yes := false, true
	a := &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: t.hints == reads, IdempotentHint: t.hints != adds, DestructiveHint: &no, OpenWorldHint: &yes}
	if t.hints == binds {
		a.DestructiveHint = &yes
	}
	described := &mcp.Tool{Name: t.name, Title: t.title, Description: t.doc, InputSchema: t.input, Annotations: a}
	if t.output != nil {
		described.OutputSchema = t.output
	}
	return described
}

// serve runs a tool for a client.
func (g *server) serve(t tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel, c, err := g.enter(ctx, r.Extra)
		if err != nil {
			return nil, err
		}
		defer cancel()
		defer c.remember(ctx)
		args, err := t.arguments(r.Params.Arguments)
		var res result
		switch {
		case err != nil:
		case c.ReadOnly() && t.hints != reads:
			err = errReadOnly
		default:
			res, err = t.run(c, ctx, args)
		}
		if err != nil && context.Cause(ctx) == custody.ErrToken { //nolint:errorlint // it comes as it is
			err = custody.ErrToken
		}
		if err != nil {
			return c.refused(ctx, t, args, err), nil
		}
		return res.encode(t.output != nil)
	}
}

// arguments reads a client's arguments as I-JSON. They have the members of the input schema, and
// no others.
func (t tool) arguments(raw []byte) (jsontext.Value, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	value, err := act.Canonical(raw)
	given := map[string]jsontext.Value{}
	if err == nil {
		err = act.Unmarshal(value, &given, "")
	}
	if err != nil {
		return nil, unreadable(err)
	}
	known, _ := t.input["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path := "/" + name[:min(len(name), act.MaxID)]
		schema, is := known[name].(object)
		if !is {
			return nil, unreadable(&act.Malformed{Path: path, Why: "is not taken here; there is " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")})
		}
		if why := outside(schema, given[name]); why != "" {
			return nil, unreadable(&act.Malformed{Path: path, Why: why})
		}
	}
	required, _ := t.input["required"].([]string)
	for _, name := range required {
		if _, is := given[name]; !is {
			return nil, unreadable(&act.Malformed{Path: "/" + name, Why: "is missing"})
		}
	}
	return value, nil
}

// outside says how a number is outside of the range of its schema; "" is not at all. The tools
// look at types and at values that are listed.
func outside(schema object, argument jsontext.Value) string {
	least, bounded := schema["minimum"].(int)
	most, both := schema["maximum"].(int)
	n, err := strconv.ParseFloat(string(argument), 64)
	switch {
	case err != nil || !bounded || !both:
		return ""
	case n < float64(least) || n > float64(most):
		return fmt.Sprintf("is from %d to %d", least, most)
	case schema["type"] == "integer" && n != math.Trunc(n):
		return "is a whole number"
	}
	return ""
}

// read decodes arguments.
func read(args jsontext.Value, into any) error {
	if err := act.Unmarshal(args, into, ""); err != nil {
		return unreadable(err)
	}
	return nil
}

// unreadable refuses arguments that are not as the input schema says.
func unreadable(err error) error {
	bad, is := errors.AsType[*act.Malformed](err)
	switch {
	case errors.Is(err, act.ErrTooLarge):
		return session.Refuse(session.TooLarge, "%s", err)
	case is && bad.Path != "":
		return session.Refuse(session.MalformedEnvelope, "%s: %s", bad.Path, bad.Why).With(map[string]string{"path": bad.Path})
	case is:
		return session.Refuse(session.MalformedEnvelope, "the arguments: %s", bad.Why)
	default:
		return session.Refuse(session.MalformedEnvelope, "the arguments are not JSON that can be read")
	}
}
