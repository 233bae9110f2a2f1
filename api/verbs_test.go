package api_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
)

// What gateways rely on: a name is a noun and a verb, each once; requests and
// replies are objects; a doc line is one line.
func TestVerbs(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^[a-z]+\.[a-z]+$`)
	seen := map[string]bool{}
	for _, v := range api.Verbs() {
		if !shape.MatchString(v.Name) || seen[v.Name] {
			t.Errorf("%q is no name, or a second verb's", v.Name)
		}
		seen[v.Name] = true
		if v.Request.Kind() != reflect.Struct || v.Reply.Kind() != reflect.Struct {
			t.Errorf("%s takes %s and answers %s, which are not both objects", v.Name, v.Request, v.Reply)
		}
		if v.Doc == "" || strings.ContainsAny(v.Doc, "\n") || strings.HasSuffix(v.Doc, ".") {
			t.Errorf("%s has the doc line %q", v.Name, v.Doc)
		}
		if v.Role != api.Principal && v.Role != api.Operator || v.Access != api.Read && v.Access != api.Write {
			t.Errorf("%s is for %q, to %q", v.Name, v.Role, v.Access)
		}
	}
	if !seen[api.SessionGet.Name] {
		t.Error("the table lacks session.get")
	}
}

// Where HTTP has a verb, no other has its path, and the names are those of members of its request.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	verbs := map[api.Endpoint]string{}
	for _, v := range api.Verbs() {
		if v.HTTP == "" {
			continue
		}
		if verbs[v.HTTP] != "" {
			t.Errorf("%s is at the endpoint of %s", v.Name, verbs[v.HTTP])
		}
		verbs[v.HTTP] = v.Name
		if read := v.HTTP.Method() == "GET"; read != (v.Access == api.Read) && v.Name != api.DiscoveryCall.Name && v.Name != api.TurnWait.Name {
			t.Errorf("%s is to %s at %s", v.Name, v.Access, v.HTTP)
		}
		var members []string
		for _, f := range api.Members(v.Request) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			members = append(members, name)
		}
		named := []string{}
		if v.Body == "" {
			named = v.HTTP.Members()
		} else {
			named = append(named, v.Body)
		}
		for _, q := range v.Query {
			named = append(named, q.Member)
		}
		for _, name := range named {
			if !slices.Contains(members, name) {
				t.Errorf("HTTP has the member %s of %s, which takes %v", name, v.Name, members)
			}
		}
	}
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb                  api.Verb
		request, target, body string
	}{
		{api.SessionGet.Verb, `{"sessionId":"a/b"}`, "/v1/asp/sessions/a%2Fb?", ""},
		{api.SessionMessages.Verb, `{"sessionId":"s","since":3,"limit":2}`, "/v1/asp/sessions/s/messages?limit=2&since_sequence=3", ""},
		{api.AgentList.Verb, `{"minTrust":1.5,"kind":"human"}`, "/v1/asp/agents?kind=human&min_trust=1.5", ""},
		{api.TurnWait.Verb, `{"sessionId":"s","since":3}`, "/v1/asp/turns/wait", `{"sessionId":"s","since":3}`},
		{api.TurnPickup.Verb, `{"leaseMs":5,"joined":true}`, "/v1/asp/turns/pickup", `{"joined":true,"leaseMs":5}`},
		{api.EscalationComment.Verb, `{"escalationId":"e","text":"x"}`, "/v1/asp/escalations/e/comment", `{"text":"x"}`},
		{api.AgentRegister.Verb, `{"card":{"agentId":"agent://a.b/c","name":"C"}}`, "/v1/asp/agents/agent:%2F%2Fa.b%2Fc/card", `{"name":"C"}`},
	} {
		target, body, err := c.verb.OverHTTP([]byte(c.request))
		if target != c.target || string(body) != c.body || err != nil {
			t.Errorf("%s %s is %s %s, %v", c.verb.Name, c.request, target, body, err)
		}
	}
	for _, request := range []string{`{}`, `{"sessionId":""}`, `{"sessionId":3}`, `[]`, `{`} {
		if target, _, err := api.SessionGet.OverHTTP([]byte(request)); err == nil {
			t.Errorf("%s goes to %s", request, target)
		}
	}
}

// An auditor reads, and changes nothing but its own keys.
func TestAuditors(t *testing.T) {
	t.Parallel()
	for _, v := range api.Verbs() {
		if want := v.Role == api.Principal && v.Access == api.Read || v.Name == "agent.rotate" || v.Name == "human.unenrol"; v.Auditors != want {
			t.Errorf("%s: auditors may call it: %v, want %v", v.Name, v.Auditors, want)
		}
	}
}
