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

// An Amount is money that an offer names.
type Amount struct {
	Value    float64 `json:"value"`
	Currency string  `json:"currency,omitzero"` // as the offer says; "" where it says none
	Path     string  `json:"path"`              // dotted, where in the offer's body it stands
}

// usualPaths are where an amount is looked for when no rule says where.
var usualPaths = []string{
	"terms.amount", "terms.totalAmount", "terms.total", "terms.totalPrice", "terms.totalCost",
	"terms.price", "terms.pricePerMonth", "terms.monthlyPrice", "terms.pricePerYear", "terms.annualPrice", "terms.pricePerUnit",
	"terms.cost", "terms.fee", "terms.monthlyFee", "terms.budget", "terms.payment", "terms.value", "terms.contractValue",
}

// Amounts are those that stand at one of the paths in an offer's body, in the
// order of the paths; without paths, at one of the usual ones.
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
			a, ok = amountAt(v, "terms."+path) // as who thinks of the terms writes it
		}
		if ok {
			found = append(found, a)
		}
	}
	return found
}

// amountAt reads a number, a decimal in a text, or an object with one. The
// currency stands in the object, else beside the number, else with the terms.
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
		if strings.Trim(v, "0123456789.-") != "" { // no exponents, no Inf: what a person reads as a number
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

// Ceiling is the most that somebody with these limits may let an agent agree
// to in a currency; without limits there is no ceiling, and in a currency that
// none of them names nothing is allowed.
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

// currencyOf is the currency that an amount is meant in: its own, else the only
// one that the limits have.
func currencyOf(own string, limits []performatives.Limit) string {
	if own == "" && len(limits) == 1 {
		return limits[0].Currency
	}
	return own
}
