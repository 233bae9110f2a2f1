package render_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

type act struct {
	Act  performatives.Performative `json:"performative"`
	Body jsontext.Value             `json:"body"`
}

// acts are examples of the thirteen acts.
func acts(t *testing.T) (all []act) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "performatives", "testdata", "acts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestActs draws each of the thirteen acts, in a session or not.
func TestActs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	chat := render.NewChat(render.Style{Colour: true})
	for i, a := range acts(t) {
		m := &performatives.Message{Sender: alpha, Performative: a.Act, ActName: a.Act.String(), RawBody: a.Body}
		out.WriteString(chat.Add(transcript.Entry{Message: m, Stamp: performatives.Stamp{
			Sequence: uint64(i), Receipt: performatives.Receipt{AcceptedAt: "2026-03-07T14:30:00Z", State: "CONVERSING"},
		}}))
	}
	golden(t, "acts", out.String())
}

// TestJSON: what a terminal would obey is escaped, and the text keeps its value.
func TestJSON(t *testing.T) {
	t.Parallel()
	text := "{\n\t\"a\": \"\u202e\u009b31m\U000e0041\ufeff\",\n\t\"b\": \"ä 日本 🤝\"\n}"
	got := render.JSON(text)
	if want := "{\n\t\"a\": \"\\u202e\\u009b31m\\udb40\\udc41\\ufeff\",\n\t\"b\": \"ä 日本 🤝\"\n}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var was, is map[string]string
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &is); err != nil || is["a"] != was["a"] || is["b"] != was["b"] {
		t.Errorf("it is %q, and was %q (%v)", is, was, err)
	}
}

// page draws the blocks of an act as a page has them.
func page(out *strings.Builder, blocks []render.Block) {
	for _, b := range blocks {
		for _, text := range []string{b.Name, b.Text(), b.Quote} {
			if text != "" {
				fmt.Fprintf(out, "  %s\n", text)
			}
		}
		for _, r := range b.Rows {
			fmt.Fprintf(out, "  %s: %s\n", r.Name, r.Text())
		}
		for _, t := range b.Terms {
			switch t.Kind {
			case api.Changed:
				fmt.Fprintf(out, "  ~ %s: %s → %s (%s)\n", t.Title(), t.Was(), t.Now(), t.Delta())
			case api.Added:
				fmt.Fprintf(out, "  + %s: %s\n", t.Title(), t.Now())
			case api.Removed:
				fmt.Fprintf(out, "  - %s: %s\n", t.Title(), t.Was())
			default:
				fmt.Fprintf(out, "  %s: %s\n", t.Title(), t.Now())
			}
		}
		if b.Rest != "" {
			fmt.Fprintf(out, "  (%s)\n", b.Rest)
		}
	}
}

func pathOf(a performatives.Agent) render.Span {
	_, path, _ := strings.Cut(strings.TrimPrefix(string(a), "agent://"), "/")
	return render.Span{Text: path}
}

// TestActsOnPages words each of the thirteen acts as a page draws it.
func TestActsOnPages(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, a := range acts(t) {
		m := &performatives.Message{Sender: alpha, Performative: a.Act, ActName: a.Act.String(), RawBody: a.Body}
		fmt.Fprintf(&out, "%s\n", a.Act)
		page(&out, render.NewReader(pathOf, render.Page).Read(transcript.Entry{Message: m}))
	}
	golden(t, "acts-page", out.String())
}

// TestReaderCompares words what each offer changes, by the terms schema, and what each
// act refers to.
func TestReaderCompares(t *testing.T) {
	t.Parallel()
	reader := render.NewReader(pathOf, render.Page)
	reader.Labels = func(schema string) map[string]api.Label {
		if schema != "plan-v1" {
			t.Errorf("the labels of %q are asked for", schema)
		}
		return map[string]api.Label{"terms.price.amount": {Title: "Price"}}
	}
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
		fmt.Fprintf(&out, "%s\n", act.act)
		page(&out, reader.Read(transcript.Entry{Message: m, Stamp: performatives.Stamp{Sequence: uint64(n)}}))
	}
	const want = `PROPOSE
  p1 plan: Plan
  Price: 20,000
  price.currency: EUR
  seats: 50
  trial: true
  version: "2"
  schema plan-v1
COUNTER
  p1 (#0) with p2
  ~ Price: 20,000 → 15,000 (−5,000 (-25 %))
  + regions: [eu, us]
  ~ version: "2" → 2 ()
  - trial: true
  (2 other terms as in p1 (#0))
COUNTER
  p2 (#1) with p3
  (the same terms as p2 (#1))
DELEGATE
  to b: advisory authority
  the plan
ACCEPT
  #3
`
	if got := out.String(); got != want {
		t.Errorf("the conversation is\n%s", got)
	}
}

// Decimals stay decimals.
func TestDelta(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][2]string{"+0.05 (+0.04995 %)": {"100.1", "100.15"}, "−0.05 (-0.9804 %)": {"5.1", "5.05"}, "+7": {"0", "7"}, "": {`"a"`, "7"}} {
		if got := (render.Term{Change: api.Change{Kind: api.Changed, Before: []byte(of[0]), After: []byte(of[1])}}).Delta(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFigure(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 15000: "15,000", 1234567.5: "1,234,567.5", -1200: "−1,200", 0.1: "0.1", 1e21: "1e+21",
	} {
		if got := render.Figure(n); got != want {
			t.Errorf("figure(%v) = %s, want %s", n, got, want)
		}
	}
	if got := render.Money(31750.5, "EUR"); got != "EUR 31,750.50" {
		t.Errorf("money is %s", got)
	}
}

func TestConsents(t *testing.T) {
	t.Parallel()
	for publish, want := range map[string]string{
		`"terms"`: "all terms of the agreement.", `["price","period"]`: "of the agreement: price, period.", "[\"a\\u202eb\"]": `: a\u202eb.`,
	} {
		if said := render.Consents(jsontext.Value(publish)); !strings.HasSuffix(said, want) {
			t.Errorf("%s reads %q, want …%s", publish, said, want)
		}
	}
	for _, nothing := range []string{"", `"hash"`, `[]`, `7`} {
		if said := render.Consents(jsontext.Value(nothing)); said != "" {
			t.Errorf("%q reads %q", nothing, said)
		}
	}
}
