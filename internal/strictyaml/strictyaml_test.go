package strictyaml_test

import (
	"testing"

	"github.com/parley-asp/parley/internal/strictyaml"
)

type level struct {
	Quorum int                `yaml:"quorum"`
	Share  float64            `yaml:"share"`
	Open   bool               `yaml:"open"`
	Name   string             `yaml:"name"`
	Who    []string           `yaml:"who"`
	By     map[string]float64 `yaml:"by"`
	Next   *level             `yaml:"next"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"quorum: 2\nnext: {name: a}": "",
		"":                           "the file is empty",
		"# who decides\n":            "the file is empty",
		"who: []\nnext:\n  by:":      "line 3: by has no value",
		"next:\n  who:\n    -\n":     "line 3: an item of who has no value",
		"next: ~":                    "line 1: next has no value",
		"~":                          "line 1: the file has no value",
		"name: a\nquorom: 2":         "line 2: field quorom not found",
		"next:\n  quorum: two":       "line 2: quorum: want a whole number",
		"{quorum: 1, next: {share: a, quorum: many-of-them}}": "line 1: share: want a number\nline 1: quorum: want a whole number",
		"quorum: 1.5":          "line 1: quorum: want a whole number",
		"quorum: 2.0":          "",
		"<<: {quorum: 1.5}":    "line 1: quorum: want a whole number",
		"next:\n  quorum: .5":  "line 2: quorum: want a whole number",
		"open: [a]":            "line 1: open: want true or false",
		"name: {a: b}":         "line 1: name: want a text",
		"who: bob":             "line 1: who: want a list",
		"by: none":             "line 1: by: want keys with values",
		"who:\n  - {a: b}":     "line 2: who: want a text",
		"next: bob":            "line 1: next: cannot be a text",
		"{name: x, quorum: x}": "line 1: want a whole number",
		"quorum: [":            "yaml: line 1: did not find expected node content",
		"name: a\nname: b":     "line 2: mapping key \"name\" already defined at line 1",
	} {
		got := ""
		if err := strictyaml.Decode([]byte(text), new(level)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n: %q, want %q", text, got, want)
		}
	}
}

// One document is read: nothing may be hidden behind it.
func TestOneDocument(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"a: 1\n": true, "---\na: 1\n": true, "a: 1\n---\n": true, "a: 1\n---\n# no more\n": true, "a: 1\n...\n": true,
		"a: 1\n---\na: 2\n": false, "a: 1\n---\nb\n": false, "a: 1\n--- {\n": false, "a: 1\n---\n---\na: 2\n": false, "a: 1\n--- null\n---\nb: [\n": false,
	} {
		var into struct {
			A int `yaml:"a"`
		}
		if err := strictyaml.Decode([]byte(text), &into); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
