package broker_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G9, in the broker, which refuses more than Step does: whoever takes part, with and without
// people who may decide, sends moves of its snapshot, filled in, and each is accepted; what is sent besides
// them is refused.
func TestMovesOfTheBroker(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Sync: time.Minute})
	w.Principal(alice)
	helper := w.Principal("agent://acme.com/helper")
	parties := [...]*testkit.Principal{w.Principal(alpha), w.Principal(beta), helper}
	besides := map[string]string{
		"ESCALATE": `{"reason":"confidence-low","urgency":"low","context":"x"}`, "QUERY": `{"queryId":"#","queryType":"x","subject":"x"}`,
		"PROPOSE": `{"proposalId":"o#","type":"x","subject":"x#","terms":{"n":#}}`, "COMMIT": `{"commitmentId":"c#","terms":{"obligations":[{"party":"agent://acme.com/alpha","action":"x"}]}}`,
		"DELEGATE": `{"targetAgent":"agent://acme.com/helper","scope":"x","authority":"advisory"}`, "CLOSE": `{}`,
	}
	said, refused, escalates := 0, 0, map[performatives.Agent]bool{}
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		mode := []string{"asp/1", "bilateral/1", "convergent/1"}[seed%3]
		policy := `{}`
		if mode == "bilateral/1" && seed < 6 {
			policy = `{"confirm":true}`
		}
		id, delegated := testkit.NewSession(), false // the helper holds one delegation of a session
		parties[0].Say(id, &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: fmt.Appendf(nil, `{"participants":[%q],"mode":%q,"policy":%s}`, beta, mode, policy),
		})
		for n := range 24 {
			p := parties[random.IntN(len(parties))]
			var now api.Snapshot
			testkit.Must(t, json.Unmarshal(p.Call("session.snapshot", fmt.Sprintf(`{"sessionId":%q}`, id)).Data, &now))
			sends := func(act string, body any) bool {
				raw, err := json.Marshal(body)
				testkit.Must(t, err)
				answer := p.Submit(id, p.Envelope(id, plain{act: performatives.Parse(act), text: raw}))
				return testkit.Code(t, answer) == ""
			}
			var acts []string
			for _, m := range now.Moves {
				acts = append(acts, m.Performative)
				escalates[p.Agent] = escalates[p.Agent] || m.Performative == "ESCALATE"
			}
			for act, body := range besides {
				if !slices.Contains(acts, act) {
					if refused++; sends(act, json.RawMessage(strings.ReplaceAll(body, "#", fmt.Sprint(n)))) {
						t.Fatalf("%s of %s is accepted while %s, and was none of its moves %v", act, p.Agent, now.State, acts)
					}
				}
			}
			moves := slices.DeleteFunc(now.Moves, func(m api.Move) bool {
				return now.State == session.Invited && m.Performative != "ACCEPT" || m.Performative == "CLOSE" || m.Performative == "ESCALATE" && n < 18 || m.Performative == "DELEGATE" && delegated
			})
			if len(moves) == 0 {
				continue
			}
			m := moves[random.IntN(len(moves))]
			delegated = delegated || m.Performative == "DELEGATE"
			var body map[string]any
			testkit.Must(t, json.Unmarshal(m.Body, &body))
			for _, path := range m.Fill {
				fill(body, path, m, n)
			}
			if said++; !sends(m.Performative, body) {
				t.Fatalf("%s %v of %s in %s is refused while %s, and was a move", m.Performative, body, p.Agent, mode, now.State)
			}
		}
	}
	if !escalates[alpha] || escalates[beta] {
		t.Errorf("ESCALATE is a move of %v, want of those alone whom somebody would answer", escalates)
	}
	t.Logf("%d moves are accepted, %d other acts refused", said, refused)
}

// A plain body is sent as it is.
type plain struct {
	performatives.Body // none: it is only sent

	act  performatives.Performative
	text []byte
}

func (b plain) Act() performatives.Performative { return b.act }
func (b plain) MarshalJSON() ([]byte, error)    { return b.text, nil }

// fill says a member of a move.
func fill(body map[string]any, path string, m api.Move, n int) {
	field := "proposalId"
	if strings.HasPrefix(m.Reference, "c") { // as moves and this test name commitments
		field = "commitmentId"
	}
	values := map[string]any{
		"terms": map[string]any{"price": n}, "terms.obligations": []any{map[string]any{"party": alpha, "action": "x"}}, "type": "x", "targetAgent": "agent://acme.com/helper",
		"questions": []any{map[string]any{"field": field, "question": "?"}}, "data": map[string]any{"note": n},
		"assessment": map[string]any{"reasoning": "x", "suggestedRoles": map[string]any{"ownUser": "peer", "otherUser": "agent"}},
	}
	value, known := values[path]
	if !known {
		value = fmt.Sprint("said ", n)
	}
	for _, l := range m.Limits {
		if l.Path == path {
			value = l.OneOf[0]
		}
	}
	if of, rest, deeper := strings.Cut(path, "."); deeper {
		in, _ := body[of].(map[string]any)
		if in == nil {
			in = map[string]any{}
			body[of] = in
		}
		if answers, is := in["answers"].([]any); is {
			for _, a := range answers {
				a.(map[string]any)["answer"] = value
			}
			return
		}
		in[rest] = value
		return
	}
	body[path] = value
}
