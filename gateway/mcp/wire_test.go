package mcpgateway_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-asp/parley/test/testkit"
)

var update = flag.Bool("update", false, "write what was answered to testdata")

// Conversations of testdata go over the wire to a broker: "calls" are lines of who calls, a
// tool and its arguments, in which {S} is the session that was opened last and {R} the newest
// referenceId. Calls that begin with a dot set the scene; of the others "wire" has request and
// response. Ids, times, hashes and keys are left out.
func TestMCPWire(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	testkit.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no conversations")
	}
	tools := map[string][2]bool{} // accepted, refused
	w := world{testkit.NewHosted(t, testkit.Options{})}
	w.Principal("human://acme.com/alice") // who decides for the buyer; nobody does for the vendor
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		testkit.Must(t, err)
		if len(a.Files) == 0 || a.Files[0].Name != "calls" {
			t.Fatalf("%s does not begin with calls", file)
		}
		c := conversation{world: w, seen: tools}
		wire := c.play(string(a.Files[0].Data))
		if *update {
			a.Files = append(a.Files[:1], txtar.File{Name: "wire", Data: []byte(wire)})
			testkit.Must(t, os.WriteFile(file, txtar.Format(a), 0o600))
			continue
		}
		if len(a.Files) != 2 || string(a.Files[1].Data) != wire {
			t.Errorf("%s: the broker answers otherwise; -update writes what it answers, and the diff says what changed\n%s", file, wire)
		}
	}
	listed, err := w.assistant(w.Tokens[cron]).ListTools(w.Ctx, nil)
	testkit.Must(t, err)
	for _, tool := range listed.Tools {
		if seen := tools[tool.Name]; !seen[0] || !seen[1] {
			t.Errorf("%s: accepted in a conversation %t, refused in one %t", tool.Name, seen[0], seen[1])
		}
	}
}

// A conversation is one file.
type conversation struct {
	world
	seen               map[string][2]bool
	session, reference string
	count              int
}

// play plays the calls, and returns the wire.
func (c *conversation) play(calls string) string {
	c.Helper()
	var wire strings.Builder
	for line := range strings.Lines(calls) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, quiet := strings.CutPrefix(line, ".")
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(parts) != 3 {
			c.Fatalf("%q is not who, tool and arguments", line)
		}
		request, response := c.call(parts[0], parts[1], strings.NewReplacer("{S}", c.session, "{R}", c.reference).Replace(parts[2]))
		if !quiet {
			fmt.Fprintf(&wire, "%s\n%s\n%s\n\n", parts[0], c.steady(request), c.steady(response))
		}
	}
	return wire.String()
}

// call calls a tool.
func (c *conversation) call(who, tool, args string) (request, response string) {
	c.Helper()
	c.count++
	token := map[string]string{"buyer": c.Tokens[cron], "vendor": c.Tokens[seller], "outsider": c.Tokens[other]}[who]
	request = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.count, tool, args)
	a := c.CallTool(token, request)
	a.Is(http.StatusOK, nil)
	var read struct {
		Result struct {
			IsError    bool `json:"isError"`
			Structured struct {
				Session   string `json:"sessionId"`
				Reference string `json:"referenceId"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	testkit.Must(c, json.Unmarshal(a.Body, &read))
	seen := c.seen[tool]
	if read.Result.IsError {
		seen[1] = true
	} else {
		seen[0] = true
	}
	c.seen[tool] = seen
	if s := read.Result.Structured; s.Session != "" && tool == "open_session" {
		c.session = s.Session
	} else if s.Reference != "" {
		c.reference = s.Reference
	}
	return request, string(a.Body)
}

var unsteady = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "{id}"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "{time}"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "{hash}"},
	{regexp.MustCompile(`\b[UA][A-Z2-7]{55}\b`), "{key}"},
	{regexp.MustCompile(`\b(propose|counter|commit|query)-[0-9a-f]{16}\b`), "$1-{made}"},
}

// steady is a message as every run has it, indented.
func (c *conversation) steady(message string) string {
	c.Helper()
	var v any
	testkit.Must(c, json.Unmarshal([]byte(message), &v))
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	testkit.Must(c, e.Encode(v))
	text := strings.ReplaceAll(out.String(), c.session, "{S}")
	if c.session == "" {
		text = out.String()
	}
	for _, u := range unsteady {
		text = u.pattern.ReplaceAllString(text, u.instead)
	}
	return strings.TrimSpace(text)
}
