package escalation

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/currency"

	"github.com/parley-asp/parley/performatives"
)

// owed are the amounts of a side's obligations in the body of an offer, but for those that were approved.
func owed(body any, side performatives.Agent, approved map[string]bool) (found []Amount, unread string) {
	for path, obligation := range obligationsOn(body, side, approved) {
		amount := obligation["amount"]
		if amount == nil {
			continue
		}
		if a, ok := amountOf(amount, obligation, body, path+".amount"); ok {
			found = append(found, a)
		} else {
			unread = cmp.Or(unread, path+".amount")
		}
	}
	return found, unread
}

// obligationsOn are a side's obligations in the body of an offer, each with its path, but for those that were approved.
func obligationsOn(body any, side performatives.Agent, approved map[string]bool) func(yield func(string, map[string]any) bool) {
	return func(yield func(string, map[string]any) bool) {
		all, _ := termsOf(body)["obligations"].([]any)
		for i, o := range all {
			obligation, _ := o.(map[string]any)
			if obligation["party"] == string(side) && !approved[sayingOf(obligation)] && !yield("terms.obligations."+strconv.Itoa(i), obligation) {
				return
			}
		}
	}
}

// adds are the amounts that a commitment adds to exact terms that were approved: those of its side's obligations, and of
// penalties where none were. Where money may stand and cannot be read for certain, it is unread.
func (p Pledge) adds(approved map[string]any) (found []Amount, unread string) {
	commitment, agreed := decoded(p.Commitment), obligationsOf(approved)
	found, unread = owed(commitment, p.Side, agreed)
	s := strict{found: found, unread: unread}
	of := text(approved, "currency")
	for path, obligation := range obligationsOn(commitment, p.Side, agreed) {
		s.obligation(obligation, of, path)
	}
	if _, had := approved["penalties"]; !had {
		s.read(termsOf(commitment)["penalties"], "", of, "terms.penalties")
	}
	return s.found, s.unread
}

// strict reads amounts where everything that has a number is one.
type strict struct {
	found  []Amount
	unread string
}

func (s *strict) cannot(path string) { s.unread = cmp.Or(s.unread, path) }

// obligation reads what an obligation says of money besides its amount. Its texts are read if they have a number and name a
// currency, or say that somebody pays; members that obligations do not have are read like penalties.
func (s *strict) obligation(o map[string]any, of, path string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		switch at := path + "." + name; name {
		case "id", "party", "deadline", "quantity", "acceptanceWindowMs":
		case "amount":
			amount, _ := o[name].(map[string]any)
			for member := range amount {
				if member != "value" && member != "currency" {
					s.cannot(at)
				}
			}
		case "unit":
			if namesMoney(asText(o[name])) {
				s.cannot(at)
			}
		case "action", "verificationMethod":
			if said := asText(o[name]); (namesMoney(said) || pays.MatchString(said)) && hasFigure(said) {
				s.text(said, at)
			}
		default:
			s.member(name, o[name], cmp.Or(text(o, "currency"), of), at)
		}
	}
}

// member reads a member: what its name says of money cannot be read.
func (s *strict) member(name string, value any, of, path string) {
	switch {
	case name == "currency" && codeOf(asText(value)) != "", name == "id" && asText(value) != "" && !namesMoney(asText(value)):
	case hasNumber.MatchString(name), namesMoney(name + " " + strings.Join(words.FindAllString(name, -1), " ")), ofShare.MatchString(name), name == "unit" && namesMoney(asText(value)):
		s.cannot(path)
	default:
		s.read(value, name, of, path)
	}
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

func (s *strict) read(at any, name, of, path string) {
	if n, is := number(at); is {
		if !timeNames.MatchString(name) || payNames.MatchString(name) {
			s.found = append(s.found, Amount{n, of, path})
		}
		return
	}
	switch at := at.(type) {
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(at)) {
			s.member(member, at[member], cmp.Or(text(at, "currency"), of), path+"."+member)
		}
	case []any:
		for i, item := range at {
			s.read(item, name, of, path+"."+strconv.Itoa(i))
		}
	case string:
		if hasFigure(at) || namesMoney(at) {
			s.text(at, path)
		}
	}
}

// text reads a text that has one sum of money, and no other number that is not of a time.
func (s *strict) text(said, path string) {
	sum := sums.FindAllStringSubmatchIndex(said, -1)
	if len(sum) != 1 {
		s.cannot(path)
		return
	}
	part := sums.FindStringSubmatch(said)
	after := said[sum[0][3]:]
	rest := said[:sum[0][2]] + " " + after
	value, readable := reading(cmp.Or(part[3], part[4]))
	code := codeOf(cmp.Or(part[2], part[5]))
	if !readable || code == "" || goesOn.MatchString(after) || namesMoney(rest) || scales.MatchString(rest) || numerals.MatchString(rest) || hasNumber.MatchString(times.ReplaceAllString(rest, "")) {
		s.cannot(path)
		return
	}
	s.found = append(s.found, Amount{value, code, path})
}

// reading is the most that a figure can mean: three digits after a point or a comma are thousands.
func reading(text string) (value float64, ok bool) {
	part := figure.FindStringSubmatch(text)
	if part == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(strings.NewReplacer(",", "", ".", "").Replace(part[1])+"."+part[2], 64)
	return value, err == nil
}

const (
	aFigure = `[0-9](?:[0-9.,]*[0-9])?`
)

var (
	figure    = regexp.MustCompile(`^([0-9]+|[0-9]{1,3}(?:[.,][0-9]{3})+)(?:[.,]([0-9]{1,2}))?$`)
	sums      = regexp.MustCompile(`(?:^|[\s(:])((` + codes + `)[ ]?(` + aFigure + `)|(` + aFigure + `)[ ]?(` + codes + `))(?:$|[\s);:!?]|[.,](?:\s|$))`)
	times     = regexp.MustCompile(`(?i)\b[0-9]{1,3}[ -]?(minutes?|hours?|((business|working|calendar) )?days?|weeks?|months?|years?)\b|\b[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9:]+))?\b`)
	timeNames = regexp.MustCompile(`(?i)^(minutes|hours|days|weeks|months|years)$|(Minutes|Hours|Days|Weeks|Months|Years|_minutes|_hours|_days|_weeks|_months|_years)$`)
	ofShare   = regexp.MustCompile(`(?i)percent|pct|rate|share|factor|multipl`)
	payNames  = regexp.MustCompile(`(?i)fee|pay|amount|price|cost|charge|per`)
	pays      = regexp.MustCompile(`(?i)\b(pay(s|ing|ments?|able)?|paid|ow(es?|ing|ed)|transfers?|remits?|refunds?|reimburses?|compensates?|deposits?|wires?)\b`)
	numerals  = regexp.MustCompile(`(?i)\b(hundreds?|thousands?|lakhs?|crores?|milli[a-z]*|[a-z]+illions?|grand|mille|tsd|mio|mln|bln|twice|thrice|doubled?|tripled?|[a-z]+fold)\b`)
	scales    = regexp.MustCompile(`(?i)\b(mille|thou|tsd|mil{1,2}|mm|mn|mrd|mio|mln|bln|bn|tn|dozens?|grand|times|percent|[kmbx])\b|[%*^]`)
	goesOn    = regexp.MustCompile(`^[\s.,]*\p{N}`) // a figure
	signs     = regexp.MustCompile(`(?i)\p{Sc}|\b(dollars?|euros?|francs?|pounds?|pesos?|krone[rn]?|krona|kronor|rupees?|sterling|yuan|yen|cents?|bucks?)\b|\b[km]?(usd|eur|gbp|jpy|chf|cny|inr|aud|nzd|sgd|hkd|sek|nok|dkk)[a-z]?\b`)
)

// codes are how texts name currencies so that they can be read.
const codes = `\p{Sc}|[A-Z]{3}|(?i:dollars?|euros?)`

// codeOf is the code of a currency, as a sum names it; "" if that can be several.
func codeOf(said string) string {
	switch strings.TrimSuffix(strings.ToLower(said), "s") {
	case "$", "dollar":
		return "USD"
	case "€", "euro":
		return "EUR"
	case "£":
		return "GBP"
	}
	unit, err := currency.ParseISO(said)
	if err != nil {
		return ""
	}
	return unit.String()
}

// hasFigure reports whether a text has a number that is not of a time, or a word for one.
func hasFigure(text string) bool {
	return hasNumber.MatchString(times.ReplaceAllString(text, "")) || numerals.MatchString(text)
}

// namesMoney reports whether a text names a currency.
func namesMoney(text string) bool {
	return signs.MatchString(text) || slices.ContainsFunc(letters.FindAllString(text, -1), func(word string) bool {
		_, err := currency.ParseISO(word)
		return err == nil && word == strings.ToUpper(word)
	})
}
