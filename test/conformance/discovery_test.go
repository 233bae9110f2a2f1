package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

const extractor = `"skills":[{"id":"pdf","name":"PDF","tags":["pdf","tables"],"input_modes":["application/pdf"],"output_modes":["application/json"],"allowed_tools":["parser"],"capabilities_detail":{"table_extraction":{}},"performance":{"avg_processing_time_ms":2000}}]`

// A found candidate, as far as the tests look.
type found struct {
	AgentID, Source                  string
	Accepted                         bool
	Score                            float64
	Rejection                        string `json:"rejection_reason"`
	MatchedTags, MatchedCapabilities []string
}

type proposals struct {
	CallID          string `json:"callId"`
	Candidates      []found
	Asked, Answered int
	Truncated       bool
}

// TestCallForProposals: agents answer by themselves or by their cards; answers that are
// late, doubled, forged or malformed do not count (GATEWAYS.md G5).
func TestCallForProposals(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	api := func(who, verb, request string) []byte {
		t.Helper()
		return ask(t, nc, "asp.agent."+token(who)+".api."+verb, []byte(request)).Data
	}
	agent := func(i int) string { return fmt.Sprintf("agent://a%d.com/extractor", i) }
	for i := range 4 {
		card := `{"card":{"capabilities":["extract.pdf"],"queueDepth":` + fmt.Sprint(i) + `,"pricing":{"amount":"0.0005","currency":"USD"},` + extractor + `}}`
		if reply := api(agent(i), "agent.register", card); code(t, reply) != "" {
			t.Fatalf("%s", reply)
		}
	}
	api(alpha, "agent.register", `{"card":{"capabilities":["buy"]}}`)

	// Agent 0 scores itself, twice; 1 sends what is no score; alpha was not asked.
	counted := make(chan string, 8)
	answer := func(who, id, body string) {
		reply, err := nc.Request("asp.agent."+token(who)+".api.discovery.answer", []byte(`{"callId":"`+id+`",`+body+`}`), wait)
		if err != nil {
			counted <- err.Error()
			return
		}
		counted <- string(reply.Data)
	}
	calls, err := nc.Subscribe("asp.discovery.extract.pdf", func(m *nats.Msg) {
		var call struct {
			CallID  string `json:"callId"`
			From    string `json:"from"`
			Summary string `json:"task_summary"`
			Until   string `json:"until"`
		}
		if err := json.Unmarshal(m.Data, &call); err != nil || call.From != alpha || call.Summary != "extract pdf tables" || call.Until == "" {
			counted <- string(m.Data)
		}
		answer(alpha, call.CallID, `"accepted":true,"score":1,"confidence":1`)
		answer(agent(1), call.CallID, `"accepted":true,"score":2,"confidence":1`)
		answer(agent(0), call.CallID, `"accepted":true,"score":0.99,"confidence":0.9`)
		answer(agent(0), call.CallID, `"accepted":true,"score":1,"confidence":0.9`)
	})
	if err != nil {
		t.Fatal(err)
	}
	task := `"task_summary":"extract pdf tables","input_mime_types":["application/pdf"],"max_cost_amount":"0.001"`
	var got proposals
	read := func(reply []byte) proposals {
		t.Helper()
		var p proposals
		if err := json.Unmarshal(reply, &p); err != nil || code(t, reply) != "" {
			t.Fatalf("%s %v", reply, err)
		}
		return p
	}
	got = read(api(alpha, "discovery.call", `{`+task+`,"capability":"extract.pdf","waitMs":2000}`))
	for i, want := range []string{`"counted":false`, `schema_invalid`, `"counted":true`, `"counted":false`} {
		if reply := <-counted; !strings.Contains(reply, want) {
			t.Errorf("answer %d: %s, want %s", i, reply, want)
		}
	}
	if got.Asked != 4 || got.Answered != 1 || len(got.Candidates) != 4 {
		t.Fatalf("%+v", got)
	}
	// By Bindu's rules: Jaccard {pdf, tables, table, extraction} with {extract, pdf, tables} is 2/5.
	for i, want := range []found{
		{AgentID: agent(0), Source: "agent", Accepted: true, Score: 0.99},
		{AgentID: agent(1), Source: "registry", Accepted: true, Score: 0.6325},
		{AgentID: agent(2), Source: "registry", Accepted: true, Score: 0.6242},
		{AgentID: agent(3), Source: "registry", Accepted: true, Score: 0.62},
	} {
		c := got.Candidates[i]
		if c.AgentID != want.AgentID || c.Source != want.Source || c.Accepted != want.Accepted || c.Score != want.Score {
			t.Errorf("candidate %d is %+v, want %+v", i, c, want)
		}
	}
	go answer(agent(2), got.CallID, `"accepted":true,"score":1,"confidence":1`)
	if reply := <-counted; !strings.Contains(reply, `"counted":false`) {
		t.Errorf("a late answer: %s", reply)
	}
	if err := calls.Unsubscribe(); err != nil {
		t.Fatal(err)
	}

	// A subject of more than 4 KiB would cost the broker its connection.
	go answer(agent(2), strings.Repeat("A", 6000)+".x", `"accepted":true,"score":1,"confidence":1`)
	if reply := <-counted; !strings.Contains(reply, `"counted":false`) {
		t.Errorf("an answer to a call with a long name: %s", reply)
	}

	// Nobody is waited for; a ranking of one's own; only those who are named.
	got = read(api(alpha, "discovery.call", `{`+task+`,"waitMs":0,"rank":"queue","agents":["`+agent(3)+`","`+agent(2)+`","`+agent(2)+`","agent://nobody.com/x"]}`))
	if got.Asked != 2 || got.Answered != 0 || got.Candidates[0].AgentID != agent(2) {
		t.Errorf("%+v", got)
	}
	got = read(api(alpha, "discovery.call", `{`+task+`,"waitMs":0,"capability":"extract.*","forbidden_tools":["parser"],"limit":2}`))
	if got.Asked != 4 || len(got.Candidates) != 2 || !got.Truncated || got.Candidates[0].Rejection != "forbidden_tool_present" {
		t.Errorf("%+v", got)
	}
	for request, want := range map[string]string{
		`{}`: `/task_summary`,
		`{"task_summary":"x","weights":{"load":-1}}`:                                      `/weights/load`,
		`{"task_summary":"x","waitMs":10001}`:                                             `/waitMs`,
		`{"task_summary":"x","rank":"luck"}`:                                              `/rank`,
		`{"task_summary":"x","limit":201}`:                                                `/limit`,
		`{"task_summary":"x","capability":"` + strings.Repeat("c", 200) + `"}`:            `/capability`,
		`{"task_summary":"x","forbidden_tools":["x"` + strings.Repeat(`,"x"`, 100) + `]}`: `at most 100`,
		`{"task_summary":"x","wait":1}`:                                                   `malformed`,
	} {
		if reply := string(api(alpha, "discovery.call", request)); !strings.Contains(reply, want) {
			t.Errorf("%s: %s", request, reply)
		}
	}
}

// TestAgentSearch: cards are found by capability, prefix, words and schema.
func TestAgentSearch(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	api := func(who, verb, request string) string {
		t.Helper()
		return string(ask(t, nc, "asp.agent."+token(who)+".api."+verb, []byte(request)).Data)
	}
	api(alpha, "agent.register", `{"card":{"name":"Alpha","capabilities":["data.extract","logs"],"schemas":["lease-v1"],`+extractor+`}}`)
	api(beta, "agent.register", `{"card":{"name":"Beta","capabilities":["data.clean"]}}`)
	for request, want := range map[string][2]bool{
		`{"capability":"data.*"}`:                  {true, true},
		`{"capability":"data.clean"}`:              {false, true},
		`{"capability":"data"}`:                    {false, false},
		`{"capability":"data.*","query":"TABLES"}`: {true, false},
		`{"query":"beta"}`:                         {false, true},
		`{"schema":"lease-v1"}`:                    {true, false},
		`{"minTrust":100.5}`:                       {false, false},
		`{"organization":"acme.com"}`:              {strings.Contains(alpha, "acme.com"), strings.Contains(beta, "acme.com")},
	} {
		reply := api(alpha, "agent.search", request)
		if got := [2]bool{strings.Contains(reply, `"`+alpha+`"`), strings.Contains(reply, `"`+beta+`"`)}; got != want {
			t.Errorf("%s finds %v, want %v: %s", request, got, want, reply)
		}
	}
	for card, path := range map[string]string{
		`{"skills":[{"id":"x"}]}`:                                                            `/card/skills/0`,
		`{"capabilities":["` + strings.Repeat("c", 200) + `"]}`:                              `/card/capabilities/0`,
		`{"skills":[{"id":"x","name":"x","tags":["t"` + strings.Repeat(`,"t"`, 200) + `]}]}`: `/card/skills/0`,
		`{"queueDepth":-1}`:                            `/card/queueDepth`,
		`{"pricing":{"amount":"-1","currency":"USD"}}`: `/card/pricing`,
		`{"skills":[{"id":"x","name":"x","tags":[` + strings.Repeat(`"tag",`, 12000) + `"tag"]}]}`: `at most 65536 bytes`,
		`{"skills":[` + strings.Repeat(`{"id":"x","name":"x"},`, 100) + `{"id":"x","name":"x"}]}`:  `at most 100 skills`,
	} {
		if reply := api(beta, "agent.register", `{"card":`+card+`}`); !strings.Contains(reply, path) {
			t.Errorf("%.60s: %s", card, reply)
		}
	}
}
