package mcpgateway

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	act "github.com/parley-asp/parley/performatives"
)

// kit is the tools that suffice to negotiate: what the others say is here one tool, which takes a
// move by its name.
func kit() []tool {
	id := text("the negotiation")
	seconds := number("wait so long for the answer, by default 0", 0, int(api.LongestWait.Seconds()))
	key := text("repeats of the call with it say nothing twice", object{"maxLength": keySchema["maxLength"]})
	role := enum("", "agent", "patient", "peer")
	listed := negotiations()[0]
	listed.output = nil
	all := []tool{
		listed,
		{
			name: api.SessionGet.Tool, title: "Read a negotiation", hints: reads, run: (*call).look,
			doc:   "A negotiation as it is now: offers with terms, what is open, what was said, and in moves all that you may say.",
			input: closed(object{"negotiationId": id}),
		},
		{
			name: api.TurnRespond.Tool, title: "Take a move", hints: binds, run: (*call).move,
			doc: "Say one of the moves of a negotiation: propose, counter, accept, reject, ask, answer, commit, withdraw, escalate (to a human of yours), delegate, close. accept and commit bind your principal.",
			input: closed(object{
				"negotiationId": id, "action": text("the move's action"), "referenceId?": text("what it is about, by default what waits for you"),
				"terms?":   object{"type": "object", "description": "of an offer, or obligations of commit; a counter changes those that it names and keeps the rest"},
				"message?": text("for the other side; the question of ask, the answer of answer"), "reason?": text("why; of escalate its code"),
				"fills?":          object{"type": "object", "description": "anything else that the move's fill and optional name, by its path"},
				"reasoning?":      text("your assessment, where the mode has one"),
				"suggestedRoles?": properties(object{"ownUser": role, "otherUser": role}),
				"ifHead?":         text("head of the view that you decided on: refused if the negotiation went on since"),
				"seconds?":        seconds, keyMember + "?": key,
			}),
		},
		{
			name: openTool, title: "Open a negotiation", hints: adds, run: (*call).begin,
			doc: "Find who does a task, or name agents; invite them, and make the first offer once they have accepted. Without purpose it only finds.",
			input: closed(object{
				"find?": text("a task: the agent that fits it best is invited"), "with?": list(text("agent://…")), "purpose?": text("what it is for, in one line"),
				"terms?": object{"type": "object", "description": "the first offer"}, "mode?": text("by default asp/1"), "message?": text("with the offer"),
				"seconds?":      number("wait so long for the invitation to be accepted, by default 20", 0, int(api.LongestWait.Seconds())),
				keyMember + "?": key,
			}),
		},
		{
			name: api.TurnWait.Tool, title: "Wait for a turn", hints: reads, run: (*call).watch,
			doc: "Wait, at most 50 seconds, for what you were not given yet, and get the view: your turn, or news such as a human's ruling. Call it again when nothing happened.",
			input: closed(object{
				"negotiationId?": text("by default any"), "since?": object{"type": []any{"string", "integer"}, "description": "cursor of your newest view, the default"},
				"seconds?": number("by default 50", 0, int(api.LongestWait.Seconds())),
			}),
		},
	}
	for i := range all {
		all[i].plain, all[i].moves = true, true
	}
	return all
}

const openTool = "open_negotiation"

// plainActions are words for acts besides their names.
var plainActions = map[string]act.Performative{
	"offer": act.Propose, "ask": act.Clarify, "question": act.Clarify, "answer": act.Inform, "inform": act.Inform, "tell": act.Inform,
}

// carriedOut are the actions that carry out what was agreed, by the type of an INFORM, the position of a
// reply, or the decision of a dispute. None of them is a move that a plain INFORM could be taken for.
var carriedOut = map[string]string{
	act.Result: "deliver", act.Progress: "report", act.Waiver: "waive", act.Dispute: "dispute", act.Amendment: "amend",
	act.Concede: "concede", act.Deny: "deny", act.OfferOf: "compensate", act.Upheld: "uphold", act.Dismissed: "dismiss", act.Split: "split",
}

// actionNamed is the action of a move.
func actionNamed(m api.Move) string {
	var body struct {
		Type string `json:"type"`
		Data struct {
			Commitment string `json:"commitmentId"`
			Dispute    string `json:"disputeId"`
			Position   string `json:"position"`
			Decision   string `json:"decision"`
		} `json:"data"`
	}
	executes := m.Performative == act.Propose.String() || m.Performative == act.Inform.String()
	if !executes || json.Unmarshal(m.Body, &body) != nil || body.Data.Commitment == "" && body.Data.Dispute == "" && body.Type != act.Amendment {
		return strings.ToLower(m.Performative)
	}
	return cmp.Or(carriedOut[cmp.Or(body.Data.Position, body.Data.Decision, body.Type)], strings.ToLower(m.Performative))
}

// actionOf is the act that an action names, in any case.
func actionOf(name string) (act.Performative, bool) {
	name = strings.ToLower(name)
	for of, action := range carriedOut {
		switch {
		case action != name:
		case of == act.Amendment:
			return act.Propose, true
		default:
			return act.Inform, true
		}
	}
	if p, is := plainActions[strings.ToLower(name)]; is {
		return p, true
	}
	p := act.Parse(strings.ToUpper(name))
	return p, p.String() == strings.ToUpper(name)
}

// actionsOf are the actions of moves.
func actionsOf(moves []api.Move) []string {
	actions := []string{}
	for _, m := range moves {
		if name := actionNamed(m); !slices.Contains(actions, name) {
			actions = append(actions, name)
		}
	}
	return actions
}
