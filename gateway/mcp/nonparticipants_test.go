package mcpgateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Whatever tool a non-participant calls on a session of others, and whichever of its resources they read,
// the answer has the same bytes as for a session that does not exist.
func TestMCPNonParticipant(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor, spy := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller]), w.assistant(w.Tokens[other])
	var opened, offer said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "1,000 cups", "invitationTimeoutMs": 600000}, &opened)
	vendor.does("accept", anything{"sessionId": opened.Session, "referenceId": "invitation"}, nil)
	buyer.does("propose", anything{"sessionId": opened.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}}, &offer)
	says := map[string]anything{
		"get_negotiation":        {},
		"respond_to_negotiation": {"action": "accept", "reasoning": "I spy", "suggestedRoles": anything{"ownUser": "peer", "otherUser": "peer"}},
		"propose":                {"type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}},
		"counter":                {"referenceId": offer.Reference, "terms": anything{"price": 5}},
		"accept":                 {"referenceId": offer.Reference},
		"reject":                 {"referenceId": offer.Reference, "code": "unspecified", "reason": "I spy", "retryable": false},
		"ask":                    {"referenceId": offer.Reference, "questions": []any{anything{"field": "terms.price", "question": "each?"}}},
		"answer":                 {"data": anything{"text": "I spy"}},
		"commit":                 {"referenceId": offer.Reference, "terms": anything{"obligations": []any{anything{"party": other, "action": "pay"}}}},
		"delegate":               {"targetAgent": other, "authority": "advisory", "scope": "all"},
		"escalate":               {"reason": "authority-limit", "urgency": "high", "context": "I spy"},
		"withdraw":               {"referenceId": offer.Reference},
		"close":                  {},
		"wait_for_turn":          {"since": 0, "seconds": 0},
		"get_transcript":         {},
		"verify_transcript":      {},
	}
	answer := func(r any, err error, id performatives.SessionID) string {
		data, failed := json.Marshal(r)
		testkit.Must(t, failed)
		if err != nil {
			data = []byte(err.Error())
		}
		return strings.ReplaceAll(string(data), string(id), "{S}")
	}
	listed, err := spy.ListTools(w.Ctx, nil)
	testkit.Must(t, err)
	nowhere := testkit.NewSession()
	for _, tool := range listed.Tools {
		schema, _ := tool.InputSchema.(anything)
		members, _ := schema["properties"].(anything)
		name := "sessionId"
		if _, has := members["negotiationId"]; has {
			name = "negotiationId"
		}
		args, has := says[tool.Name]
		if _, of := members[name]; of != has {
			t.Errorf("%s is of a session: %t; the non-participant calls it: %t", tool.Name, of, has)
		} else if has {
			var answers []string
			for _, id := range []performatives.SessionID{opened.Session, nowhere} {
				args[name] = id
				res, err := spy.try(w.Ctx, tool.Name, args)
				answers = append(answers, answer(res, err, id))
			}
			if answers[0] != answers[1] || !strings.Contains(answers[0], "unknown_session") {
				t.Errorf("%s: a session of others is answered\n%s\nand of none\n%s", tool.Name, answers[0], answers[1])
			}
		}
	}
	for _, part := range []string{"", "/transcript"} {
		var answers []string
		for _, id := range []performatives.SessionID{opened.Session, nowhere} {
			r, err := spy.ReadResource(w.Ctx, &mcp.ReadResourceParams{URI: "parley://session/" + string(id) + part})
			answers = append(answers, answer(r, err, id))
			if err == nil {
				t.Errorf("a non-participant reads %s", answers[0])
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("a resource of a session of others is answered\n%s\nand of none\n%s", answers[0], answers[1])
		}
	}
}
