package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// TestActs draws each of the thirteen acts, in a session or not.
func TestActs(t *testing.T) {
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
	chat := render.NewChat(render.Style{Colour: true})
	for i, a := range acts {
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
