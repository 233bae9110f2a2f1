package readme

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	httpgateway "github.com/parley-asp/parley/gateway/http"
	"github.com/parley-asp/parley/test/testkit"
)

// TestEndpoints: the table of requests has all that HTTP serves, and no other query parameters.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	var served struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name string `json:"name"`
				In   string `json:"in"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	answer := httptest.NewRecorder()
	httpgateway.New(httpgateway.Options{Service: &gateway.Service{}}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/openapi.json", nil))
	testkit.Must(t, json.Unmarshal(answer.Body.Bytes(), &served))
	takes := map[string][]string{} // by method and path, the parameters of the query
	for at, methods := range served.Paths {
		for method, operation := range methods {
			endpoint := strings.ToUpper(method) + " " + nameless(strings.TrimPrefix(at, api.HTTPBase))
			takes[endpoint] = []string{}
			for _, p := range operation.Parameters {
				if p.In == "query" {
					takes[endpoint] = append(takes[endpoint], p.Name)
				}
			}
		}
	}
	told := map[string]bool{}
	for _, row := range tableWith(t, "`POST /token`") {
		before := ""
		for _, span := range span.FindAllStringSubmatch(row[0], -1) {
			method, rest, whole := strings.Cut(span[1], " ")
			if !whole { // the end of another path
				method, rest, _ = strings.Cut(path.Dir(before)+"/"+span[1], " ")
			}
			at, query, _ := strings.Cut(rest, "?")
			before = method + " " + nameless(strings.TrimPrefix(at, api.HTTPBase))
			told[before] = true
			for parameter := range strings.SplitSeq(strings.TrimSuffix(query, "…"), "&") {
				if name, _, _ := strings.Cut(parameter, "="); name != "" && !slices.Contains(takes[before], name) {
					t.Errorf("the document has the parameter %s of %s, which takes %v", name, before, takes[before])
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(takes)), slices.Sorted(maps.Keys(told))); diff != "" {
		t.Errorf("HTTP serves (-), and the document has (+):\n%s", diff)
	}
}

// TestTools: the table of MCP's tools has those of the verbs.
func TestTools(t *testing.T) {
	t.Parallel()
	rows := tableWith(t, "`find_agents`")
	for _, v := range api.Verbs() {
		if v.Tool != "" && !slices.ContainsFunc(rows, func(row []string) bool { return strings.Contains(row[0], "`"+v.Tool+"`") }) {
			t.Errorf("the document does not have the tool %s of %s", v.Tool, v.Name)
		}
	}
}

var span = regexp.MustCompile("`([^`]+)`")

// nameless is a path without the names in its braces, which a document may shorten.
func nameless(at string) string { return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(at, "{}") }

// tableWith is the table of the documents in whose first column this is.
func tableWith(t *testing.T, cell string) [][]string {
	t.Helper()
	documents, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	testkit.Must(t, err)
	for _, name := range documents {
		for text := range strings.SplitSeq(document(t, "docs/"+filepath.Base(name)), "\n\n") {
			if all := rows(text); slices.ContainsFunc(all, func(row []string) bool { return row[0] == cell }) {
				return all
			}
		}
	}
	t.Fatalf("no document has a table with %s", cell)
	return nil
}
