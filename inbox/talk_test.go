package inbox

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestTalk draws each of the thirteen acts as the pages show it.
func TestTalk(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "performatives", "testdata", "acts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var acts []struct {
		Act  performatives.Performative `json:"performative"`
		Body jsontext.Value             `json:"body"`
	}
	if err := json.Unmarshal(data, &acts); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, a := range acts {
		m := &performatives.Message{Sender: "agent://acme.com/a", Performative: a.Act, ActName: a.Act.String(), RawBody: a.Body}
		e := (&teller{"acme.com", render.NewOffers(), noLabels, pathOf}).entry(transcript.Entry{Message: m})
		fmt.Fprintf(&out, "%s %s\n", e.Act, e.Line)
		for _, text := range e.Text {
			fmt.Fprintf(&out, "  | %s\n", text.All)
		}
		e.show(&out)
		for _, p := range e.Pairs {
			fmt.Fprintf(&out, "  %s: %s\n", p.Name, p.Value.All)
		}
	}
	golden := filepath.Join("testdata", "talk.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the acts read differently; -update rewrites %s:\n%s", golden, out.String())
	}
}

func noLabels(string) map[string]api.Label { return nil }

func (v *entry) show(out *strings.Builder) {
	for _, t := range v.Terms {
		switch t.Kind {
		case api.Changed:
			fmt.Fprintf(out, "  ~ %s: %s → %s (%s)\n", t.Label, t.Was.All, t.Now.All, t.Delta)
		case api.Added:
			fmt.Fprintf(out, "  + %s: %s\n", t.Label, t.Now.All)
		case api.Removed:
			fmt.Fprintf(out, "  - %s: %s\n", t.Label, t.Was.All)
		default:
			fmt.Fprintf(out, "  %s: %s\n", t.Label, t.Now.All)
		}
	}
	if v.Rest != "" {
		fmt.Fprintf(out, "  (%s)\n", v.Rest)
	}
}

// TestTalkCompares draws a conversation with what each offer changes, in the words of
// the terms schema, and with what each act refers to, as session show does.
func TestTalkCompares(t *testing.T) {
	t.Parallel()
	teller := &teller{"acme.com", render.NewOffers(), func(schema string) map[string]api.Label {
		if schema != "plan-v1" {
			t.Errorf("the labels of %q are asked for", schema)
		}
		return map[string]api.Label{"terms.price.amount": {Title: "Price"}}
	}, pathOf}
	var out strings.Builder
	for n, act := range []struct {
		act  performatives.Performative
		body string
	}{
		{performatives.Propose, `{"proposalId":"p1","type":"plan","subject":"Plan","schema":"plan-v1","terms":{"price":{"amount":20000,"currency":"EUR"},"seats":50,"trial":true,"version":"2"}}`},
		{performatives.Counter, `{"proposalId":"p2","referenceId":"p1","terms":{"price":{"amount":15000,"currency":"EUR"},"seats":50,"regions":["eu","us"],"version":2}}`},
		{performatives.Counter, `{"proposalId":"p3","referenceId":"p2","terms":{"price":{"amount":15000,"currency":"EUR"},"seats":50,"regions":["eu","us"],"version":2}}`},
		{performatives.Delegate, `{"targetAgent":"agent://acme.com/b","scope":"the plan","authority":"advisory"}`},
		{performatives.Accept, `{"referenceId":"019478a3-0002-7def-8a12-000000000003"}`},
	} {
		m := &performatives.Message{ID: performatives.MessageID(fmt.Sprintf("019478a3-0002-7def-8a12-%012d", n)), Sender: "agent://acme.com/a", Performative: act.act, ActName: act.act.String(), RawBody: jsontext.Value(act.body)}
		v := teller.entry(transcript.Entry{Message: m, Stamp: performatives.Stamp{Sequence: uint64(n)}})
		fmt.Fprintf(&out, "%s %s\n", v.Act, v.Line)
		v.show(&out)
	}
	const want = `PROPOSE Plan · plan · p1
  Price: 20,000
  price.currency: EUR
  seats: 50
  trial: true
  version: "2"
COUNTER p1 (#0) with p2
  ~ Price: 20,000 → 15,000 (-25 %)
  + regions: [eu, us]
  ~ version: "2" → 2 ()
  - trial: true
  (2 other terms as in p1 (#0))
COUNTER p2 (#1) with p3
  (the same terms as p2 (#1))
DELEGATE to agent://acme.com/b · advisory authority
ACCEPT #3
`
	if got := out.String(); got != want {
		t.Errorf("the conversation is\n%s", got)
	}
}
