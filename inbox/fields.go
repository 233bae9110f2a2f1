package inbox

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/render"
)

// A field is one term in the Modify form: the rule that binds it and the value.
type field struct {
	term
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
	byPath := map[string]api.Change{}
	for _, c := range item.Changes {
		byPath[c.Path] = c
	}
	var all []field
	for n, t := range asTerms(item) {
		after := byPath[t.at].After
		if after == nil || len(after) > maxEquals {
			continue
		}
		known := schema.at(strings.TrimPrefix(t.at, "terms."))
		f := field{term: t, At: jsonText(t.at), Type: "fixed", Raw: render.JSON(string(after)), Value: plainValue(after), First: n < firstTerms || t.weight() < 2}
		switch {
		case len(known.Enum) > 0:
			f.choices(after, known.Enum)
		case after.Kind() == 't' || after.Kind() == 'f':
			f.choices(after, []jsontext.Value{jsontext.Value("true"), jsontext.Value("false")})
		case after.Kind() == '0' || t.Stake && isDecimal(f.Value):
			f.Type, f.Step = "number", "any"
			f.Min, f.Max = string(known.Minimum), string(known.Maximum)
			if len(known.Multiple) > 0 {
				f.Step = string(known.Multiple)
			} else if string(known.Type) == `"integer"` {
				f.Step = "1"
			}
			if t.Stake {
				f.Currency = code(item.Amount.Currency)
			}
		case after.Kind() == '"' && len(after) < maxInput && render.Clean(f.Value) == f.Value:
			f.Type = "text" // one with characters that cannot be seen would not be what it looks like
		}
		f.Number = len(all)
		all = append(all, f)
	}
	return all
}

// FoldedFields are those that the form shows on request.
func (v *item) FoldedFields() []field {
	n := slices.IndexFunc(v.Fields, func(f field) bool { return !f.First })
	if n < 0 {
		return nil
	}
	return v.Fields[n:]
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

// code returns a currency as an authority names it, "" for what is no code.
func code(currency string) string {
	currency = strings.ToUpper(strings.TrimSpace(currency))
	if len(currency) != 3 || strings.Trim(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return currency
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

// firstTerms is how many terms are shown before the rest is folded.
const firstTerms = 12

// byWeight puts the amount at stake first, then what has changed.
func byWeight(a, b term) int {
	return cmp.Compare(a.weight(), b.weight())
}

func (t *term) weight() int {
	switch {
	case t.Stake:
		return 0
	case t.Kind != api.Same:
		return 1
	}
	return 2
}
