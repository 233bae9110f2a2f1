package inbox

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
)

// A termTable is terms at stake, before and now.
type termTable struct {
	Compared bool // there is a previous offer
	Rows     []render.Term
}

// asTerms returns the terms at stake, those that matter first.
func asTerms(item *api.EscalationItem) []render.Term {
	return termsOf(item.Changes, item.Amount, item.Labels)
}

// termsOf returns the terms of an offer, those that matter first.
func termsOf(changes []api.Change, amount *escalation.Amount, labels map[string]api.Label) []render.Term {
	var all []render.Term
	for _, c := range changes {
		t := render.Term{Change: c, Note: labels[c.Path].Description, Stake: amount != nil && amount.Path == c.Path}
		t.Label = cmp.Or(c.Label, inWords(c.Path))
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b render.Term) int { return cmp.Compare(weight(a), weight(b)) })
	return all
}

// foldTerms splits the terms into those that are shown at once and the rest: with an
// offer before it, the rest is what stayed the same.
func foldTerms(item *api.EscalationItem) (first, rest termTable) {
	return fold(asTerms(item), item.Previous != nil)
}

func fold(all []render.Term, compared bool) (first, rest termTable) {
	n := min(len(all), firstTerms)
	for n < len(all) && weight(all[n]) < 2 {
		n++
	}
	return termTable{compared, all[:n]}, termTable{Rows: all[n:]}
}

// firstTerms is how many terms are shown before the rest is folded.
const firstTerms = 12

// weight puts the amount at stake first, then what has changed.
func weight(t render.Term) int {
	switch {
	case t.Stake:
		return 0
	case t.Kind != api.Same:
		return 1
	}
	return 2
}

// inWords makes a label from a term's path if the schema has none.
func inWords(path string) string {
	path = strings.TrimPrefix(path, "terms.")
	letters := []rune(path)
	within := func(i int, from, to rune) bool {
		return i >= 0 && i < len(letters) && letters[i] >= from && letters[i] <= to
	}
	var b strings.Builder
	for i, r := range letters {
		capital := within(i, 'A', 'Z')
		if i > 0 && capital && (!within(i-1, 'A', 'Z') || within(i+1, 'a', 'z')) {
			b.WriteByte(' ')
			if !within(i+1, 'A', 'Z') { // of two or more capitals, such as SLA, it stays
				r = unicode.ToLower(r)
			}
		}
		if r == '.' || r == '_' || r == '-' {
			r = ' '
		}
		b.WriteRune(r)
	}
	text := clean(strings.Join(strings.Fields(b.String()), " "))
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return "?"
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// A field is one term in the Modify form: the rule that binds it and the value.
type field struct {
	render.Term
	At       string // the path as the offer has it, as JSON; Path is for display
	Type     string // number, text, select, or fixed for a value that can only stay as it is
	Raw      string // the value as JSON
	Value    string // of an input
	Options  []option
	Min, Max string
	Step     string
	Currency string // of the amount at stake
	First    bool   // it is shown; the others are folded
	Number   int    // for ids
}

type option struct {
	JSON, Value string
	Chosen      bool
}

// property is the part of a terms schema that a form uses.
type property struct {
	Type       jsontext.Value      `json:"type"`
	Enum       []jsontext.Value    `json:"enum"`
	Minimum    jsontext.Value      `json:"minimum"`
	Maximum    jsontext.Value      `json:"maximum"`
	Multiple   jsontext.Value      `json:"multipleOf"`
	Properties map[string]property `json:"properties"`
}

// The longest value that a bound repeats, and the longest that an input holds.
const (
	maxEquals = 2 << 10
	maxInput  = 200
)

// asFields returns the form fields of the terms at stake, with constraints from the
// terms schema. The order is that of the terms.
func asFields(item *api.EscalationItem) []field {
	var schema property
	if len(item.TermsSchema) > 0 && json.Unmarshal(item.TermsSchema, &schema) != nil {
		schema = property{}
	}
	var all []field
	for n, t := range asTerms(item) {
		after := t.After
		if after == nil || len(after) > maxEquals {
			continue
		}
		known := schema.at(strings.TrimPrefix(t.Path, "terms."))
		f := field{Term: t, At: jsonText(t.Path), Type: "fixed", Raw: render.JSON(string(after)), Value: plainValue(after), First: n < firstTerms || weight(t) < 2}
		switch {
		case len(known.Enum) > 0:
			f.choices(after, known.Enum)
		case after.Kind() == 't' || after.Kind() == 'f':
			f.choices(after, []jsontext.Value{jsontext.Value("true"), jsontext.Value("false")})
		case after.Kind() == '0' || t.Stake && isDecimal(f.Value):
			f.Type = "number"
			f.Min, f.Max = string(known.Minimum), string(known.Maximum)
			if len(known.Multiple) > 0 {
				f.Step = string(known.Multiple)
			} else if string(known.Type) == `"integer"` {
				f.Step = "1"
			}
			if t.Stake {
				f.Currency = item.Amount.Code()
			}
		case after.Kind() == '"' && len(after) < maxInput && render.Clean(f.Value) == f.Value:
			f.Type = "text" // one with characters that cannot be seen would not be what it looks like
		}
		f.Number = len(all)
		all = append(all, f)
	}
	return all
}

// folded are the fields that the form shows on request.
func folded(all []field) []field {
	n := slices.IndexFunc(all, func(f field) bool { return !f.First })
	if n < 0 {
		return nil
	}
	return all[n:]
}

func (f *field) choices(now jsontext.Value, of []jsontext.Value) {
	f.Type = "select"
	if !slices.ContainsFunc(of, func(v jsontext.Value) bool { return bytes.Equal(v, now) }) {
		of = append([]jsontext.Value{now}, of...)
	}
	for _, v := range of {
		f.Options = append(f.Options, option{render.JSON(string(v)), clean(plainValue(v)), bytes.Equal(v, now)})
	}
}

// jsonText is a string as JSON without characters that a page escapes.
func jsonText(s string) string {
	quoted, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""` // it was in JSON, so it is valid
	}
	return render.JSON(string(quoted))
}

func isDecimal(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && strings.Trim(text, "-.0123456789") == ""
}

func (p property) at(path string) property {
	for name := range strings.SplitSeq(path, ".") {
		p = p.Properties[name]
	}
	return p
}

// plainValue formats a value for an input.
func plainValue(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}
