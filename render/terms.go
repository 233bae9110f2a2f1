package render

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// A leaf is one value of a JSON document and the dotted path to it.
type leaf struct {
	path string
	json jsontext.Value
}

// flatten lists the leaves of a value: scalars and lists of scalars.
func flatten(v jsontext.Value) []leaf {
	if s := string(v); s == "" || s == "{}" || s == "[]" {
		return nil
	}
	return appendLeaves(nil, "", v)
}

func appendLeaves(leaves []leaf, path string, v jsontext.Value) []leaf {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	kind := d.PeekKind()
	if kind != '{' && (kind != '[' || listOfScalars(v)) || len(v) <= 2 {
		return append(leaves, leaf{path, v})
	}
	if _, err := d.ReadToken(); err != nil {
		return append(leaves, leaf{path, v})
	}
	for i := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		below := path + "[" + strconv.Itoa(i) + "]"
		if kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return append(leaves, leaf{path, v})
			}
			below = join(path, name.String())
		}
		member, err := d.ReadValue()
		if err != nil {
			return append(leaves, leaf{path, v})
		}
		leaves = appendLeaves(leaves, below, member.Clone())
	}
	return leaves
}

// join appends a name to a path. It quotes a name with dots, brackets, quotes or
// spaces, so that different leaves have different paths.
func join(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" ") {
		if quoted, err := jsontext.AppendQuote(nil, name); err == nil {
			name = string(quoted)
		}
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func listOfScalars(v jsontext.Value) bool {
	for _, e := range elementsOf(v) {
		if k := e.Kind(); k == '{' || k == '[' {
			return false
		}
	}
	return true
}

func elementsOf(v jsontext.Value) []jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var elements []jsontext.Value
	for d.PeekKind() != ']' {
		e, err := d.ReadValue()
		if err != nil {
			return elements
		}
		elements = append(elements, e.Clone())
	}
	return elements
}

// Value formats a value for people: strings without quotes, unless that would be
// ambiguous.
func Value(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return string(v)
		}
		s := string(text)
		if s == "" || s != strings.TrimSpace(s) || jsontext.Value(s).IsValid() || strings.ContainsAny(s, "→") {
			return string(v)
		}
		return s
	case '[':
		elements := elementsOf(v)
		words := make([]string, len(elements))
		for i, e := range elements {
			words[i] = Value(e)
			if strings.ContainsAny(words[i], ",[]") {
				words[i] = string(e)
			}
		}
		return "[" + strings.Join(words, ", ") + "]"
	default:
		return string(v)
	}
}

// A row is a named value with a mark before it.
type row struct {
	mark  span
	name  string
	value []span
}

func rowsOf(leaves []leaf) []row { return termRows(termsOf(leaves)) }

// A Term is one value of an offer's terms, beside what it was in the offer before.
type Term struct {
	Path     string
	Kind     string // api.Same, Changed, Added or Removed
	Was, Now jsontext.Value
}

// termsOf lists the terms of an offer that is compared with no other.
func termsOf(leaves []leaf) []Term {
	terms := make([]Term, len(leaves))
	for i, l := range leaves {
		terms[i] = Term{Path: l.path, Kind: api.Same, Now: l.json}
	}
	return terms
}

// differences returns the changes from one offer's terms to another's, and the number
// of unchanged leaves.
func differences(before, after []leaf) (terms []Term, same int) {
	old := map[string]jsontext.Value{}
	for _, l := range before {
		old[l.path] = l.json
	}
	now := map[string]bool{}
	for _, l := range after {
		now[l.path] = true
		was, had := old[l.path]
		switch {
		case !had:
			terms = append(terms, Term{Path: l.path, Kind: api.Added, Now: l.json})
		case bytes.Equal(was, l.json):
			same++
		default:
			terms = append(terms, Term{l.path, api.Changed, was, l.json})
		}
	}
	for _, l := range before {
		if !now[l.path] {
			terms = append(terms, Term{Path: l.path, Kind: api.Removed, Was: l.json})
		}
	}
	return terms, same
}

// termRows are terms as rows, with a mark before what has changed.
func termRows(terms []Term) []row {
	rows := make([]row, len(terms))
	for i, t := range terms {
		rows[i] = row{name: t.Path}
		switch r := &rows[i]; t.Kind {
		case api.Added:
			r.mark, r.value = span{"+", good}, []span{{Value(t.Now), good}}
		case api.Removed:
			r.mark, r.value = span{"-", bad}, []span{{Value(t.Was), bad}}
		case api.Changed:
			r.mark, r.value = span{"~", warn}, []span{{Value(t.Was), bad}, hushed(" → "), {Value(t.Now), good}}
			if change := t.Change(); change != "" {
				r.value = append(r.value, hushed(" ("+change+")"))
			}
		default:
			r.value = []span{said(Value(t.Now))}
		}
	}
	return rows
}

// Change formats the relative change of a number, such as +25 %.
func (t Term) Change() string {
	if t.Was.Kind() != '0' || t.Now.Kind() != '0' {
		return ""
	}
	a, errA := strconv.ParseFloat(string(t.Was), 64)
	b, errB := strconv.ParseFloat(string(t.Now), 64)
	if errA != nil || errB != nil || a <= 0 || b < 0 || b/a > 100 {
		return ""
	}
	return fmt.Sprintf("%+.4g %%", (b-a)/a*100)
}

// widestName is the maximum width of the name column.
const widestName = 28

// rows adds named values in two columns.
func (p *page) rows(indent int, rows []row) {
	column := 0
	for _, r := range rows {
		column = max(column, min(textWidth(Clean(r.name)), widestName, p.width()/3))
	}
	for _, r := range rows {
		name := Clean(r.name)
		pad := strings.Repeat(" ", max(column-textWidth(name), 0)+2)
		mark := r.mark
		if mark.text == "" {
			mark = said(" ")
		}
		spans := append([]span{mark, said(" "), hushed(name), said(pad)}, r.value...)
		p.put(indent, min(indent+2+column+2, p.width()/2), spans...)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
