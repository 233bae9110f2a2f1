package inbox

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
)

// A term is one row of the terms at stake, before and now.
type term struct {
	Path, Label, Note string
	Kind              string // same, changed, added or removed
	Was, Now          prose
	Delta             string // the change of a number
	Stake             bool   // the amount at stake
	Compared          bool   // there is a previous offer
	at                string // the path as the offer has it
}

// A stake is the amount at stake.
type stake struct {
	Sum, Path, Currency string
	Amount              float64
}

// asTerms returns the terms at stake, those that matter first.
func asTerms(item *api.EscalationItem) []term {
	at := stakeOf(item)
	var all []term
	for _, c := range item.Changes {
		label := item.Labels[c.Path]
		t := term{Path: clean(c.Path), Label: clean(c.Label), Note: clean(label.Description), Kind: c.Kind, Delta: delta(c), Compared: item.Previous != nil, at: c.Path}
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
	slices.SortStableFunc(all, byWeight)
	return all
}

// foldTerms splits the terms into those that are shown at once and the rest: with an
// offer before it, the rest is what stayed the same.
func foldTerms(all []term) (first, rest []term) {
	n := min(len(all), firstTerms)
	for n < len(all) && all[n].weight() < 2 {
		n++
	}
	rest = slices.Clone(all[n:])
	for i := range rest {
		rest[i].Compared = false // what they were is what they are
	}
	return all[:n], rest
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
