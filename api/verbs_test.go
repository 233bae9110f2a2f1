package api_test

import (
	"reflect"
	"regexp"
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

// An auditor reads, and changes nothing but its own keys.
func TestAuditors(t *testing.T) {
	t.Parallel()
	for _, v := range api.Verbs() {
		if want := v.Role == api.Principal && v.Access == api.Read || v.Name == "agent.rotate" || v.Name == "human.unenrol"; v.Auditors != want {
			t.Errorf("%s: auditors may call it: %v, want %v", v.Name, v.Auditors, want)
		}
	}
}
