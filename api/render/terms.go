package render

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
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

// PageValue formats a value for a page: a number in groups of digits, and anything
// else as Value does.
func PageValue(v jsontext.Value) string {
	var n float64
	if v.Kind() == '0' && json.Unmarshal(v, &n) == nil {
		return Figure(n)
	}
	return Value(v)
}

// A Row is a named value with a mark before it.
type Row struct {
	Mark  Span
	Name  string
	Value []Span
}

// Text is the value without its inks.
func (r Row) Text() string { return joined(r.Value) }

func rowsOf(leaves []leaf) []Row { return termRows(termsOf(leaves)) }

// A Term is one value of an offer's terms, beside what it was in the offer before.
type Term struct {
	api.Change
	Note  string // what the terms schema says of it
	Stake bool   // it holds the amount at stake
}

func newTerm(path, kind string, was, now jsontext.Value) Term {
	return Term{Change: api.Change{Path: path, Kind: kind, Before: was, After: now}}
}

// Title is what a page calls the term.
func (t Term) Title() string { return cmp.Or(t.Label, t.Path) }

// Was is the value before, on a page.
func (t Term) Was() string { return PageValue(t.Before) }

// Now is the value, on a page.
func (t Term) Now() string { return PageValue(t.After) }

// termsOf lists the terms of an offer that is compared with no other.
func termsOf(leaves []leaf) []Term {
	terms := make([]Term, len(leaves))
	for i, l := range leaves {
		terms[i] = newTerm(l.path, api.Same, nil, l.json)
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
			terms = append(terms, newTerm(l.path, api.Added, nil, l.json))
		case bytes.Equal(was, l.json):
			same++
		default:
			terms = append(terms, newTerm(l.path, api.Changed, was, l.json))
		}
	}
	for _, l := range before {
		if !now[l.path] {
			terms = append(terms, newTerm(l.path, api.Removed, l.json, nil))
		}
	}
	return terms, same
}

// termRows are terms as rows, with a mark before what has changed.
func termRows(terms []Term) []Row {
	rows := make([]Row, len(terms))
	for i, t := range terms {
		rows[i] = Row{Name: t.Path}
		switch r := &rows[i]; t.Kind {
		case api.Added:
			r.Mark, r.Value = Span{"+", good}, []Span{{Value(t.After), good}}
		case api.Removed:
			r.Mark, r.Value = Span{"-", bad}, []Span{{Value(t.Before), bad}}
		case api.Changed:
			r.Mark, r.Value = Span{"~", warn}, []Span{{Value(t.Before), bad}, hushed(" → "), {Value(t.After), good}}
			if change := t.Ratio(); change != "" {
				r.Value = append(r.Value, hushed(" ("+change+")"))
			}
		default:
			r.Value = []Span{said(Value(t.After))}
		}
	}
	return rows
}

// numbers are the values before and now of a number that has changed.
func (t Term) numbers() (was, now float64, ok bool) {
	if t.Kind != api.Changed || t.Before.Kind() != '0' || t.After.Kind() != '0' {
		return 0, 0, false
	}
	return was, now, json.Unmarshal(t.Before, &was) == nil && json.Unmarshal(t.After, &now) == nil
}

// Ratio formats the relative change of a number, such as +25 %.
func (t Term) Ratio() string {
	was, now, ok := t.numbers()
	if !ok || was <= 0 || now < 0 || now/was > 100 {
		return ""
	}
	return fmt.Sprintf("%+.4g %%", (now-was)/was*100)
}

// Delta formats the change of a number, such as +5,000 (+25 %).
func (t Term) Delta() string {
	was, now, ok := t.numbers()
	if !ok {
		return ""
	}
	// Floats differ by more digits than their decimals have: 5.05 and 5.1.
	by, err := strconv.ParseFloat(strconv.FormatFloat(now-was, 'g', 12, 64), 64)
	if err != nil {
		return ""
	}
	delta := Figure(by)
	if by > 0 {
		delta = "+" + delta
	}
	if ratio := t.Ratio(); ratio != "" {
		delta += " (" + ratio + ")"
	}
	return delta
}

// widestName is the maximum width of the name column.
const widestName = 28

// rows adds named values in two columns.
func (p *page) rows(indent int, rows []Row) {
	column := 0
	for _, r := range rows {
		column = max(column, min(textWidth(Clean(r.Name)), widestName, p.width()/3))
	}
	for _, r := range rows {
		name := Clean(r.Name)
		pad := strings.Repeat(" ", max(column-textWidth(name), 0)+2)
		mark := r.Mark
		if mark.Text == "" {
			mark = said(" ")
		}
		spans := append([]Span{mark, said(" "), hushed(name), said(pad)}, r.Value...)
		p.put(indent, min(indent+2+column+2, p.width()/2), spans...)
	}
}
