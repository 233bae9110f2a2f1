package inbox

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// A term is one row of the terms at stake, before and now.
type term struct {
	Path, Label, Note string
	Kind              string // same, changed, added or removed
	Was, Now          prose
	Delta             string // the change of a number
	Stake             bool   // the amount at stake
}

// A stake is the amount at stake.
type stake struct {
	Sum, Path, Currency string
	Amount              float64
}

func asTerms(item *api.EscalationItem) []term {
	at := stakeOf(item)
	var all []term
	for _, c := range item.Changes {
		label := item.Labels[c.Path]
		t := term{Path: clean(c.Path), Label: clean(c.Label), Note: clean(label.Description), Kind: c.Kind, Delta: delta(c)}
		if t.Label == "" {
			t.Label = inWords(c.Path)
		}
		if c.Before != nil {
			t.Was = asProse(valueText(c.Before))
		}
		if c.After != nil {
			t.Now = asProse(valueText(c.After))
		}
		t.Stake = at != nil && at.Path == c.Path
		all = append(all, t)
	}
	return all
}

// inWords makes a label from a term's path if the schema has none.
func inWords(path string) string {
	path = strings.TrimPrefix(path, "terms.")
	var b strings.Builder
	for i, r := range path {
		switch {
		case r == '.' || r == '_' || r == '-':
			b.WriteRune(' ')
		case r >= 'A' && r <= 'Z' && i > 0:
			b.WriteString(" " + strings.ToLower(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	text := clean(strings.Join(strings.Fields(b.String()), " "))
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return "?"
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

func delta(c api.Change) string {
	var before, after float64
	if c.Kind != api.Changed || c.Before.Kind() != '0' || c.After.Kind() != '0' ||
		json.Unmarshal(c.Before, &before) != nil || json.Unmarshal(c.After, &after) != nil || before == 0 {
		return ""
	}
	sign := "+"
	if after < before {
		sign = ""
	}
	percent := (after - before) / before * 100
	// Floats differ by more digits than their decimals have: 5.05 and 5.1.
	by, err := strconv.ParseFloat(strconv.FormatFloat(after-before, 'g', 12, 64), 64)
	if err != nil {
		return ""
	}
	return sign + figure(by) + " (" + sign + figure(math.Round(percent*10)/10) + " %)"
}

// A field is one term in the Modify form.
type field struct {
	term
	Type    string // number, text, checkbox or select
	Value   string
	Options []option
	Min     string
	Max     string
	Step    string
	// An authority bounds one amount: the amount at stake, or any number if there is none.
	MayBound, Bounds bool
}

type option struct {
	Value  string
	Chosen bool
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

// asFields returns the form fields of the terms at stake, with constraints from the
// terms schema. Terms of other types have no field.
func asFields(item *api.EscalationItem) []field {
	var schema property
	if len(item.TermsSchema) > 0 && json.Unmarshal(item.TermsSchema, &schema) != nil {
		schema = property{}
	}
	var all []field
	for n, t := range asTerms(item) {
		after := item.Changes[n].After
		f := field{term: t, Value: plainValue(after)}
		known := schema.at(strings.TrimPrefix(t.Path, "terms."))
		switch {
		case after == nil:
			continue
		case len(known.Enum) > 0:
			f.Type = "select"
			for _, v := range known.Enum {
				f.Options = append(f.Options, option{plainValue(v), bytes.Equal(v, after)})
			}
		case after.Kind() == '0':
			f.Type, f.Step = "number", "any"
			f.Min, f.Max = string(known.Minimum), string(known.Maximum)
			if len(known.Multiple) > 0 {
				f.Step = string(known.Multiple)
			} else if string(known.Type) == `"integer"` {
				f.Step = "1"
			}
		case after.Kind() == 't' || after.Kind() == 'f':
			f.Type = "select"
			f.Options = []option{{"true", after.Kind() == 't'}, {"false", after.Kind() == 'f'}}
		case after.Kind() == '"' && len(after) < 200:
			f.Type = "text"
		default:
			continue
		}
		all = append(all, f)
	}
	seen := slices.ContainsFunc(all, func(f field) bool { return f.Stake && f.Type == "number" })
	for n := range all {
		f := &all[n]
		f.MayBound = f.Type == "number" && (f.Stake || !seen)
		f.Bounds = f.Stake
	}
	return all
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
