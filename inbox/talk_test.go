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

	"github.com/parley-asp/parley/performatives"
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
		e := asEntry(transcript.Entry{Message: m}, "acme.com")
		fmt.Fprintf(&out, "%s %s\n", e.Act, e.Line)
		for _, text := range e.Text {
			fmt.Fprintf(&out, "  | %s\n", text.All)
		}
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
