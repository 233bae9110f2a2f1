package escalation

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/text/currency"

	"github.com/parley-asp/parley/performatives"
)

// owed are the amounts of a side's obligations in the body of an offer, but for those that were approved: their amount,
// what is named like one, and money in texts, such as an action "pay 400 EUR".
func owed(body any, side performatives.Agent, approved map[string]bool) (found []Amount, unread string) {
	all, _ := termsOf(body)["obligations"].([]any)
	for i, o := range all {
		obligation, _ := o.(map[string]any)
		if obligation["party"] != string(side) || approved[sayingOf(obligation)] {
			continue
		}
		path := "terms.obligations." + strconv.Itoa(i)
		if amount := obligation["amount"]; amount != nil {
			if a, ok := amountOf(amount, obligation, body, path+".amount"); ok {
				found = append(found, a)
			} else {
				unread = cmp.Or(unread, path+".amount")
			}
		}
		others := maps.Clone(obligation)
		for _, name := range []string{"amount", "id", "party"} {
			delete(others, name)
		}
		more, not := stated(others, body, path, false)
		found, unread = append(found, more...), cmp.Or(unread, not)
	}
	return found, unread
}

// adds are the amounts that a commitment obliges its side to besides what was approved, and those of penalties, if none
// were: every number there that is not of a time is one, whatever its name.
func (p Pledge) adds(approved map[string]any) (found []Amount, unread string) {
	commitment := decoded(p.Commitment)
	found, unread = owed(commitment, p.Side, obligationsOf(approved))
	if _, had := approved["penalties"]; had {
		return found, unread
	}
	more, not := stated(termsOf(commitment)["penalties"], map[string]any{"terms": approved}, "terms.penalties", true)
	return append(found, more...), cmp.Or(unread, not)
}

// stated are the amounts in what a commitment says: numbers, all or those named like amounts, and money in texts.
func stated(what, body any, path string, all bool) (found []Amount, unread string) {
	var walk func(at, in any, name, path string, named bool)
	walk = func(at, in any, name, path string, named bool) {
		if _, isNumber := number(at); isNumber {
			if named && !saysWhen(at, name) && (all || !isQuantity(at, in, name, path)) {
				a, _ := amountOf(at, in, body, path)
				found = append(found, a)
			}
			return
		}
		switch at := at.(type) {
		case map[string]any:
			for _, member := range slices.Sorted(maps.Keys(at)) {
				walk(at[member], at, member, path+"."+member, named || namesAmount(member))
			}
		case []any:
			for i, item := range at {
				walk(item, in, name, path+"."+strconv.Itoa(i), named)
			}
		case string:
			sums, rest := moneyIn(at)
			for _, a := range sums {
				a.Path = path
				found = append(found, a)
			}
			if hasNumber.MatchString(rest) && (named && !saysWhen(rest, name) || hasCurrency(rest)) {
				unread = cmp.Or(unread, path)
			}
		}
	}
	walk(what, nil, "", path, all)
	return found, unread
}

var (
	payable  = regexp.MustCompile(`(?:(\p{Sc}|\b[A-Z]{3})\s?)?([0-9](?:[0-9.,'’\s]*[0-9])?)\s?(\p{Sc}|\p{L}+)?`)
	times    = regexp.MustCompile(`(?i)\b[0-9]{1,3}\s*(hours?|(business |working |calendar )?days?|weeks?|months?)\b|\b[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z)?\b`)
	figure   = regexp.MustCompile(`^([0-9]+|[0-9]{1,3}(?:[.,'’\s][0-9]{3})+)(?:[.,]([0-9]{1,2}))?$`)
	noDigits = regexp.MustCompile(`[^0-9]`)
)

// moneyIn reads the sums of money in a text, each as the most that it can mean: "1.500 EUR" is 1500. rest is the text
// without them and without times.
func moneyIn(text string) (found []Amount, rest string) {
	rest = payable.ReplaceAllStringFunc(times.ReplaceAllString(text, ""), func(said string) string {
		part := payable.FindStringSubmatch(said)
		value, readable := reading(part[2])
		before, after := hasCurrency(part[1]), hasCurrency(part[3])
		if !readable || !before && !after {
			return said
		}
		code := part[1]
		if !before {
			code = part[3]
		}
		if unit, err := currency.ParseISO(code); err == nil {
			code = unit.String()
		} else {
			code = ""
		}
		found = append(found, Amount{Value: value, Currency: code})
		return ""
	})
	return found, rest
}

// reading is the most that a figure can mean: three digits after a point or a comma are thousands.
func reading(text string) (value float64, ok bool) {
	part := figure.FindStringSubmatch(text)
	if part == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(noDigits.ReplaceAllString(part[1], "")+"."+part[2], 64)
	return value, err == nil
}
