package mcpgateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// answered is what one of two workers is told: accepted, or a refusal with the snapshot to decide on anew.
type answered struct {
	Code    string
	Details struct {
		Snapshot api.Snapshot `json:"snapshot"`
	}
}

// GATEWAYS.md G9: two workers of one agent decide on the same snapshot, at the first offer and at each later
// act, by each door: one act is accepted, and the other worker gets chain_conflict with the new snapshot.
func TestTwoWorkersDecide(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})}
	type said struct {
		by     performatives.Agent
		worker int
		id     performatives.SessionID
		act    string
		body   map[string]any
		head   performatives.Hash
	}
	worker := func(s said) string { return fmt.Sprintf("%s#%d", s.by, s.worker) }
	text := func(v any) string {
		data, err := json.Marshal(v)
		testkit.Must(t, err)
		return string(data)
	}
	assistants := map[string]assistant{}
	for _, a := range []performatives.Agent{cron, seller} {
		for n := range 2 {
			token := fmt.Sprintf("%s#%d", a, n)
			assistants[token] = w.connects(token, "")
		}
	}
	for door, say := range map[string]func(said) answered{
		"HTTP": func(s said) (a answered) {
			got := w.Send("POST", testkit.SessionPath(s.id)+"/messages", worker(s), text(map[string]any{"performative": s.act, "body": s.body}), func(r *http.Request) {
				r.Header.Set("If-Match", fmt.Sprintf("%q", s.head))
			})
			if got.StatusCode != http.StatusOK {
				testkit.Must(t, json.Unmarshal(got.Body, &a, json.MatchCaseInsensitiveNames(true)))
			}
			return a
		},
		"NATS": func(s said) answered {
			request := text(map[string]any{"sessionId": s.id, "performative": s.act, "body": s.body, "ifHead": s.head})
			m, err := testkit.Request(w.Plain(), api.Call(s.by, api.SessionSay.Name), []byte(request))
			testkit.Must(t, err)
			var got struct{ Error answered }
			testkit.Must(t, json.Unmarshal(m.Data, &got, json.MatchCaseInsensitiveNames(true)))
			return got.Error
		},
		"MCP": func(s said) (a answered) {
			args := map[string]any{"negotiationId": s.id, "action": s.act, "ifHead": s.head, "fills": s.body}
			if of, is := s.body["referenceId"]; is {
				args["referenceId"] = of
			}
			res, err := assistants[worker(s)].try(w.Ctx, "respond_to_negotiation", args)
			testkit.Must(t, err)
			if res.IsError {
				var got struct {
					Code string
					Now  struct{ Head performatives.Hash }
				}
				testkit.Must(t, json.Unmarshal([]byte(textOf(res)), &got, json.MatchCaseInsensitiveNames(true)))
				a.Code, a.Details.Snapshot.Head.Hash = got.Code, got.Now.Head
			}
			return a
		},
	} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			var opened api.Acceptance
			w.Send("POST", "/v1/asp/sessions", string(cron), fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).Is(http.StatusCreated, &opened)
			offers := func(n int) string { return fmt.Sprint("offer of worker ", n) }
			for _, step := range []struct {
				by   performatives.Agent
				act  string
				body func(now api.Snapshot, worker int) map[string]any
			}{
				{seller, "ACCEPT", func(api.Snapshot, int) map[string]any { return map[string]any{"referenceId": "invitation"} }},
				{cron, "PROPOSE", func(_ api.Snapshot, n int) map[string]any {
					return map[string]any{"proposalId": offers(n), "type": "service-agreement", "subject": "cups", "terms": map[string]any{"price": n}}
				}},
				{seller, "COUNTER", func(now api.Snapshot, n int) map[string]any {
					return map[string]any{"proposalId": "counter-" + offers(n), "referenceId": now.Open[0].ID, "terms": map[string]any{"price": 10 + n}}
				}},
				{cron, "ACCEPT", func(now api.Snapshot, _ int) map[string]any { return map[string]any{"referenceId": now.Open[0].ID} }},
				{seller, "CLOSE", func(api.Snapshot, int) map[string]any { return map[string]any{"outcome": "completed"} }},
			} {
				var now api.Snapshot
				w.Send("GET", testkit.SessionPath(opened.Session)+"/snapshot", string(step.by), "").Is(http.StatusOK, &now)
				got := make(chan answered, 2)
				for n := range 2 {
					go func() { got <- say(said{step.by, n, opened.Session, step.act, step.body(now, n), now.Head.Hash}) }()
				}
				first, second := <-got, <-got
				if first.Code != "" {
					first, second = second, first
				}
				at := now.Head.N
				w.Send("GET", testkit.SessionPath(opened.Session)+"/snapshot", string(step.by), "").Is(http.StatusOK, &now)
				if first.Code != "" || second.Code != "chain_conflict" || now.Head.N != at+1 || second.Details.Snapshot.Head.Hash != now.Head.Hash {
					t.Fatalf("%s of two workers at %d is answered %q, and %q at %s; the head is %+v", step.act, at, first.Code, second.Code, second.Details.Snapshot.Head.Hash, now.Head)
				}
			}
		})
	}
}
