package performatives

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/acts.txt")

const messageID = MessageID("019478a3-7b2c-7def-8a12-3456789abcde")

// A sample is one act of testdata/acts.json.
type sample struct {
	Act  Performative   `json:"performative"`
	JSON jsontext.Value `json:"body"`
	body Body
}

func samples(t *testing.T) []sample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "acts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		m := Message{Performative: all[i].Act, RawBody: all[i].JSON}
		if err := m.DecodeBody(); err != nil {
			t.Fatal(err)
		}
		all[i].body = m.Body
	}
	return all
}

// TestActsSpeak has every act say its category, its id, what it refers to and
// how it reads, and compares that with testdata/acts.txt.
func TestActsSpeak(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	spoke := map[Performative]bool{}
	for _, s := range samples(t) {
		spoke[s.Act] = true
		fmt.Fprintf(&out, "%s %s id=%q refers=%q\n", s.Act, s.Act.Category(), s.body.ID(messageID), s.body.Refers())
		text := s.body.Text()
		out.WriteString(strings.TrimRight("  "+sentence(text.Line), " ") + "\n")
		for _, part := range text.Below {
			fmt.Fprintf(&out, "    %s\n", drawn(part))
		}
	}
	for _, p := range All() {
		if !spoke[p] {
			t.Errorf("testdata/acts.json has no %s", p)
		}
	}
	golden := filepath.Join("testdata", "acts.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("the acts say something else; -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

func sentence(words []Word) string {
	var s strings.Builder
	for i, w := range words {
		s.WriteString(w.Lead)
		switch {
		case !w.At.IsZero():
			s.WriteString(w.At.UTC().Format(time.RFC3339))
		case w.Kind == Money:
			fmt.Fprintf(&s, "%g %s", w.Amount, w.Text)
		case w.Kind == Plain:
			s.WriteString(w.Text)
		default:
			s.WriteString("<" + w.Text + ">")
		}
		if i == 0 && w.Kind == OwnID {
			s.WriteString(" ")
		}
	}
	return s.String()
}

func drawn(part Part) string {
	kind := strings.ToLower(reflect.TypeOf(part).Name())
	switch part := part.(type) {
	case Prose:
		return fmt.Sprintf("%s[%s] %q", kind, part.Name, part.Text)
	case Data:
		return fmt.Sprintf("%s[%s] %s", kind, part.Name, part.Value)
	case Terms:
		return fmt.Sprintf("%s %s", kind, part.Value)
	case Details:
		return fmt.Sprintf("%s[%s] %s", kind, part.Of, sentence(part.Words))
	default:
		return fmt.Sprintf("%s %+v", kind, part)
	}
}

// TestCategories is the table of PROTOCOL.md §4.
func TestCategories(t *testing.T) {
	t.Parallel()
	protocol, err := os.ReadFile(filepath.Join("..", "docs", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range All() {
		if row := fmt.Sprintf("\n| %s | %s |", p, p.Category()); !strings.Contains(string(protocol), row) {
			t.Errorf("docs/PROTOCOL.md has no row %q", row)
		}
	}
	if Unknown.Category() != "" || Acts.Category() != "" {
		t.Error("what is no act has a category")
	}
}

// TestReferences: an act refers to what its referenceId names, and is called by
// its own id where it has one, else by its messageId or not at all.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		var fields struct {
			Reference  string `json:"referenceId"`
			Proposal   string `json:"proposalId"`
			Commitment string `json:"commitmentId"`
			Query      string `json:"queryId"`
		}
		if err := json.Unmarshal(s.JSON, &fields); err != nil {
			t.Fatal(err)
		}
		if fields.Reference != "" && s.body.Refers() != fields.Reference {
			t.Errorf("%s refers to %q, not %q", s.Act, s.body.Refers(), fields.Reference)
		}
		own := fields.Proposal + fields.Commitment + fields.Query
		named, ok := s.body.(Named)
		if ok != (own != "") {
			t.Errorf("%s has an id of its own: %t", s.Act, ok)
		}
		if !ok {
			continue
		}
		if id := s.body.ID(messageID); id != own {
			t.Errorf("%s is called %q, not %q", s.Act, id, own)
		}
		if named.SetID("another"); s.body.ID(messageID) != "another" {
			t.Errorf("%s keeps its id", s.Act)
		}
	}
}

// TestReasonsAndRemarks: what is set on an act is what it says.
func TestReasonsAndRemarks(t *testing.T) {
	t.Parallel()
	var explained, remarked, offering []Performative
	for _, p := range All() {
		body := NewBody(p)
		said := func(what string) {
			for _, part := range body.Text().Below {
				if strings.Contains(drawn(part), what) {
					return
				}
			}
			t.Errorf("%s does not say %q", p, what)
		}
		if b, ok := body.(Explained); ok {
			explained = append(explained, p)
			b.Because("for a reason")
			said("for a reason")
		}
		if b, ok := body.(Remarked); ok {
			remarked = append(remarked, p)
			b.Remark().Message, b.Remark().Assessment = "by the way", Object(`{"sure":1}`)
			said("by the way")
			said(`{"sure":1}`)
		}
		if _, ok := body.(Offering); ok {
			offering = append(offering, p)
		}
	}
	for _, c := range []struct {
		what      string
		got, want []Performative
	}{
		{"may give a reason", explained, []Performative{Accept, Counter, Commit, Withdraw}},
		{"may have remarks", remarked, []Performative{Propose, Accept, Reject, Counter, Clarify}},
		{"offer terms", offering, []Performative{Propose, Counter}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("the acts that %s (-want +got):\n%s", c.what, diff)
		}
	}
}
