package escalation

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/currency"

	"github.com/parley-asp/parley/performatives"
)

// An Amount is a sum of money in an offer.
type Amount struct {
	Value    float64 `json:"value"`
	Currency string  `json:"currency,omitzero"` // as in the offer; "" if it has none
	Path     string  `json:"path"`              // dotted path in the offer's body
}

// Code returns the currency as an authority names it, "" for what is no code.
func (a *Amount) Code() string {
	code := strings.ToUpper(strings.TrimSpace(a.Currency))
	if len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return code
}

// usualPaths are searched for an amount if no rule names paths.
var usualPaths = []string{
	"terms.amount", "terms.totalAmount", "terms.total", "terms.totalPrice", "terms.totalCost",
	"terms.price", "terms.pricePerMonth", "terms.monthlyPrice", "terms.pricePerYear", "terms.annualPrice", "terms.pricePerUnit",
	"terms.cost", "terms.fee", "terms.monthlyFee", "terms.budget", "terms.payment", "terms.value", "terms.contractValue",
}

// Readable says what an amount looks like, for refusals.
const Readable = `a readable amount is a number, a decimal text such as "1500.50", or an object with one of them as amount or value, its currency, and no other number`

// Amounts returns the readable amounts at these paths of an offer's body, in the
// order of the paths. Without paths it searches the usual ones. unread is the
// first path at which something else stands, "" if there is none. Strictly, a path
// that can mean two places has no readable amount.
func Amounts(body jsontext.Value, paths []string, strict bool) (found []Amount, unread string) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil, ""
	}
	return amounts(v, paths, strict)
}

// Highest returns the highest of the [Amounts], nil for none.
func Highest(body jsontext.Value, paths []string, strict bool) (highest *Amount, unread string) {
	found, unread := Amounts(body, paths, strict)
	for n := range found {
		if highest == nil || found[n].Value > highest.Value {
			highest = &found[n]
		}
	}
	return highest, unread
}

func amounts(v any, paths []string, strict bool) (found []Amount, unread string) {
	if len(paths) == 0 {
		paths = usualPaths
	}
	for _, path := range paths {
		ambiguous := strict && meanings(v, path) > 1
		at, in, ok := lookUp(v, &path)
		if !ok {
			continue
		}
		a, ok := amountOf(at, in, v, path)
		ok = ok && !ambiguous
		switch {
		case ok:
			found = append(found, a)
		case unread == "":
			unread = path
		}
	}
	return found, unread
}

// amountsAnywhere returns the amounts in the terms of an offer's body, however deep they
// are: what is named like an amount, and texts such as "99,999 USD".
func amountsAnywhere(v any) (found []Amount, unread string) { return amountsIn(v, false) }

// amountsNamed are those that are money as far as can be told: a value in a unit is a quantity, and what has no number, or
// says when a payment is due, is no amount that cannot be read.
func amountsNamed(v any) (found []Amount, unread string) { return amountsIn(v, true) }

func amountsIn(v any, likely bool) (found []Amount, unread string) {
	var walk func(at, in any, name, path string)
	walk = func(at, in any, name, path string) {
		switch at := at.(type) {
		case nil, bool:
			return
		case []any:
			for i, item := range at {
				walk(item, at, name, path+"."+strconv.Itoa(i))
			}
			return
		}
		if namesAmount(name) || isMoney(at) {
			a, ok := amountOf(at, in, v, path)
			switch {
			case likely && ok && isQuantity(at, in, name, path), likely && !ok && isNoAmount(at, name):
			case ok:
				found = append(found, a)
			case unread == "":
				unread = path
			}
			return
		}
		if object, is := at.(map[string]any); is {
			for _, member := range slices.Sorted(maps.Keys(object)) {
				walk(object[member], object, member, path+"."+member)
			}
		}
	}
	if terms, in, ok := performatives.Find(v, "terms"); ok {
		walk(terms, in, "", "terms")
	}
	return found, unread
}

// isQuantity reports whether a value stands beside a unit that is no currency, in an object of their own.
func isQuantity(at, in any, name, path string) bool {
	object, _ := in.(map[string]any)
	unit, _ := object["unit"].(string)
	_, isNumber := number(at)
	return isNumber && name == "value" && path != "terms.value" && unit != "" && object["currency"] == nil && !hasCurrency(unit)
}

// isNoAmount reports whether what is named like an amount has no number, or says when a payment is due.
func isNoAmount(at any, name string) bool {
	text, err := json.Marshal(at)
	if err != nil || !hasNumber.Match(text) {
		return err == nil
	}
	return strings.HasPrefix(strings.ToLower(name), "payment") && saysWhen(at, name)
}

// saysWhen reports whether all numbers in a value are of times: of days, weeks or months, or dates.
func saysWhen(at any, name string) bool {
	switch at := at.(type) {
	case map[string]any:
		for member, value := range at {
			if !saysWhen(value, member) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(at, func(item any) bool { return !saysWhen(item, name) })
	case string:
		return !hasNumber.MatchString(at) || ofTime.MatchString(at) || isDate.MatchString(at)
	case float64:
		return namesTime.MatchString(name) && at <= 999
	}
	return true
}

// hasCurrency reports whether a text names a currency.
func hasCurrency(text string) bool {
	return hasSign.MatchString(text) || slices.ContainsFunc(letters.FindAllString(text, -1), func(word string) bool {
		_, err := currency.ParseISO(word)
		return err == nil && word == strings.ToUpper(word) && word != "KGS" // kilograms, where it is a unit
	})
}

var (
	hasNumber = regexp.MustCompile(`\p{N}`)
	letters   = regexp.MustCompile(`\p{L}+`)
	ofTime    = regexp.MustCompile(`(?i)^\s*(net\s*[0-9]{1,3}(\s*days?)?|((payable|due|within|in|after)\s+)?[0-9]{1,3}\s*(days?|weeks?|months?)(\s+(net|after|from|of|upon)\b\PN*)?)\s*$`)
	isDate    = regexp.MustCompile(`(?i)^\s*((payable|due|by|on|before|until)\s+)*[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z)?\s*$`)
	namesTime = regexp.MustCompile(`^(days|weeks|months)$|(Days|Weeks|Months|_days|_weeks|_months)$`)
	hasSign   = regexp.MustCompile(`(?i)\p{Sc}|dollar|euro|sterling|\bcents?\b|\byen\b|yuan|rupee|franc|peso|kron|\b(usd|eur|gbp|jpy|chf|cny|inr)\b`)
)

// amountNames are the words with which the name of an amount ends, or starts before "per".
var amountNames = map[string]bool{
	"amount": true, "total": true, "price": true, "cost": true, "fee": true, "budget": true, "payment": true, "value": true, "charge": true,
}

// words are those of a name in any of the usual spellings: setupFee, setup_fee, SETUP-FEE.
var words = regexp.MustCompile(`[A-Z]*[a-z]+|[A-Z]+`)

func namesAmount(name string) bool {
	all := words.FindAllString(name, -1)
	for i, word := range all {
		word = strings.ToLower(word)
		last := i == len(all)-1 || strings.EqualFold(all[i+1], "per")
		if last && (amountNames[word] || amountNames[strings.TrimSuffix(word, "s")]) {
			return true
		}
	}
	return false
}

var money = regexp.MustCompile(`^([A-Z]{0,3}\s?[$€£¥]|[A-Z]{3})?\s?[0-9][0-9.,'’\s]*([$€£¥]|[A-Z]{3})?$`)

// isMoney reports whether a value is a text of a number and a currency.
func isMoney(v any) bool {
	s, _ := v.(string)
	s = strings.TrimSpace(s)
	return money.MatchString(s) && strings.Trim(s, "0123456789.,'’ ") != ""
}

// lookUp finds what stands at a path, which may be relative to the terms.
func lookUp(v any, path *string) (found, in any, ok bool) {
	if found, in, ok = performatives.Find(v, *path); ok {
		return found, in, true
	}
	inTerms := "terms." + *path
	if found, in, ok = performatives.Find(v, inTerms); ok {
		*path = inTerms
	}
	return found, in, ok
}

// meanings counts the places that a path can mean.
func meanings(v any, path string) (n int) {
	for _, p := range []string{path, "terms." + path} {
		for range performatives.Places(v, p) {
			n++
		}
	}
	return n
}

// amountOf reads a number, a decimal string, or an object with one. The currency
// is that of the object, else the one beside the number, else that of the terms.
func amountOf(found, in, v any, path string) (Amount, bool) {
	beside := text(in, "currency")
	if object, is := found.(map[string]any); is {
		name, only := sum(object)
		if !only {
			return Amount{}, false
		}
		in, found, path = object, object[name], path+"."+name
	}
	value, ok := number(found)
	if !ok {
		return Amount{}, false
	}
	terms, _, _ := performatives.Find(v, "terms")
	return Amount{value, cmp.Or(text(in, "currency"), beside, text(terms, "currency"), text(v, "currency")), path}, true
}

// sum is the name of the member that is the object's amount, false if another
// member could be taken for it.
func sum(object map[string]any) (name string, only bool) {
	for member, v := range object {
		_, isNumber := number(v)
		switch v.(type) {
		case map[string]any, []any:
			isNumber = true
		}
		switch {
		case member == "amount" || member == "value":
			if name != "" {
				return "", false
			}
			name = member
		case isNumber:
			return "", false
		}
	}
	return name, name != ""
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		if strings.Trim(v, "0123456789.-") != "" { // no exponents, no Inf: only what people read as a number
			return 0, false
		}
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil
	}
	return 0, false
}

// digits is a number, or a text of one, as a text.
func digits(v any) string {
	if n, is := v.(float64); is {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return v.(string) //nolint:errcheck,forcetypeassert // number has read it
}

func text(v any, name string) string {
	object, _ := v.(map[string]any)
	s, _ := object[name].(string)
	return s
}

// Ceiling is the most that a human with these limits may approve in a currency.
// Without limits there is no ceiling; in a currency without a limit it is 0.
func Ceiling(limits []performatives.Limit, currency string) float64 {
	if len(limits) == 0 {
		return math.Inf(1)
	}
	i := slices.IndexFunc(limits, func(l performatives.Limit) bool { return strings.EqualFold(l.Currency, currency) })
	if i < 0 {
		return 0
	}
	return limits[i].MaxAmount
}

// currencyOf is the currency of an amount: its own, else that of the only limit.
func currencyOf(own string, limits []performatives.Limit) string {
	if own == "" && len(limits) == 1 {
		return limits[0].Currency
	}
	return own
}
