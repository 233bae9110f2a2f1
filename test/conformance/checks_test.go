package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestChecksAreBounded: whatever a delegator and the other side write, a check
// stays small, and says that it was cut (PROTOCOL.md §9).
func TestChecksAreBounded(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	const carol = "human://acme.com/carol"
	says := func(id, who, act, body string) {
		t.Helper()
		accepted(t, ask(t, nc, submitSubject(who, id), []byte(envelope(id, who, act, body))))
	}
	var id string
	for range 8 {
		id = v7()
		says(id, alpha, "PROPOSE", invite(beta))
		says(id, beta, "ACCEPT", `{"referenceId":"inv"}`)
		terms := map[string]string{"long": strings.Repeat("ü", 40_000)}
		for n := range 3000 {
			terms[fmt.Sprintf("term%04d", n)] = strings.Repeat("x", 20)
		}
		data, err := json.Marshal(terms)
		if err != nil {
			t.Fatal(err)
		}
		says(id, beta, "PROPOSE", `{"proposalId":"p","type":"x","subject":"`+strings.Repeat("s", 5000)+`","terms":`+string(data)+`}`)
		says(id, alpha, "DELEGATE", `{"targetAgent":"`+carol+`","scope":"`+strings.Repeat("ä", 100_000)+`","authority":"advisory"}`)
		says(id, carol, "INFORM", `{"type":"progress","data":1}`)
	}
	call := func(verb, request string, into any) int {
		t.Helper()
		m := ask(t, nc, "asp.agent."+token(carol)+".api."+verb, []byte(request))
		if err := json.Unmarshal(m.Data, into); err != nil || code(t, m.Data) != "" {
			t.Fatalf("%s: %v %.200s", verb, err, m.Data)
		}
		return len(m.Data)
	}
	type check struct {
		Scope     string
		Truncated bool
		Changes   []struct{ Path string }
	}
	var got check
	if size := call("check.get", `{"sessionId":"`+id+`"}`, &got); size > 100_000 || !got.Truncated || len(got.Changes) != 200 || !strings.HasSuffix(got.Scope, "ä…") {
		t.Errorf("check.get has %d bytes, %d changes, truncated: %v", size, len(got.Changes), got.Truncated)
	}
	var list struct {
		Checks []check
		Next   string
	}
	if size := call("check.list", `{"limit":5}`, &list); size > 20_000 || len(list.Checks) != 5 || list.Next == "" {
		t.Errorf("check.list has %d bytes of %d checks, next %q", size, len(list.Checks), list.Next)
	}
	next := list.Next
	list.Checks, list.Next = nil, ""
	if call("check.list", `{"limit":5,"cursor":"`+next+`"}`, &list); len(list.Checks) != 3 || list.Next != "" {
		t.Errorf("the second page has %d checks, next %q", len(list.Checks), list.Next)
	}
}
