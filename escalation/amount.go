package escalation

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An Amount is a sum of money in an offer.
type Amount struct {
	Value    float64 `json:"value"`
	Currency string  `json:"currency,omitzero"` // as in the offer; "" if it has none
	Path     string  `json:"path"`              // dotted path in the offer's body
}

// usualPaths are searched for an amount if no rule names paths.
var usualPaths = []string{
	"terms.amount", "terms.totalAmount", "terms.total", "terms.totalPrice", "terms.totalCost",
	"terms.price", "terms.pricePerMonth", "terms.monthlyPrice", "terms.pricePerYear", "terms.annualPrice", "terms.pricePerUnit",
	"terms.cost", "terms.fee", "terms.monthlyFee", "terms.budget", "terms.payment", "terms.value", "terms.contractValue",
}

// Amounts returns the amounts at these paths of an offer's body, in the order of
// the paths. Without paths it searches the usual ones.
func Amounts(body jsontext.Value, paths []string) []Amount {
	if len(paths) == 0 {
		paths = usualPaths
	}
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	var found []Amount
	for _, path := range paths {
		a, ok := amountAt(v, path)
		if !ok {
			a, ok = amountAt(v, "terms."+path) // a path may be relative to the terms
		}
		if ok {
			found = append(found, a)
		}
	}
	return found
}

// amountAt reads a number, a decimal string, or an object with one. The currency
// is that of the object, else the one beside the number, else that of the terms.
func amountAt(v any, path string) (Amount, bool) {
	found, in, ok := performatives.Find(v, path)
	if !ok {
		return Amount{}, false
	}
	beside := text(in, "currency")
	if object, is := found.(map[string]any); is {
		in, path = object, path+".amount"
		if found, ok = object["amount"]; !ok {
			found, path = object["value"], path[:len(path)-len("amount")]+"value"
		}
	}
	value, ok := number(found)
	if !ok {
		return Amount{}, false
	}
	terms, _, _ := performatives.Find(v, "terms")
	return Amount{value, cmp.Or(text(in, "currency"), beside, text(terms, "currency"), text(v, "currency")), path}, true
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
	i := slices.IndexFunc(limits, func(l performatives.Limit) bool { return l.Currency == currency })
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
