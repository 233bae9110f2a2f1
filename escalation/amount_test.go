package escalation_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Only plain numbers are amounts.
func TestAmounts(t *testing.T) {
	for body, want := range map[string]escalation.Amount{
		`{"terms":{"price":1.5,"currency":"EUR"}}`:                        {Value: 1.5, Currency: "EUR", Path: "terms.price"},
		`{"terms":{"price":"-1.50"}}`:                                     {Value: -1.5, Path: "terms.price"},
		`{"terms":{"price":{"value":2,"currency":"USD"}},"currency":"X"}`: {Value: 2, Currency: "USD", Path: "terms.price.value"},
		`{"terms":{"price":{"amount":"2"},"currency":"GBP"}}`:             {Value: 2, Currency: "GBP", Path: "terms.price.amount"},
		`{"terms":{"price":"15,000"}}`:                                    {},
		`{"terms":{"price":"$15000"}}`:                                    {},
		`{"terms":{"price":"Inf"}}`:                                       {},
		`{"terms":{"price":"1e9"}}`:                                       {},
		`{"terms":{"price":"0x1p4"}}`:                                     {},
		`{"terms":{"price":""}}`:                                          {},
		`{"terms":{"price":[1]}}`:                                         {},
		`{"terms":{"price":{}}}`:                                          {},
		`{"terms":{"price":true}}`:                                        {},
		`{"terms":7}`:                                                     {},
		`[]`:                                                              {},
		`{`:                                                               {},
	} {
		got := escalation.Amounts(jsontext.Value(body), nil)
		if want == (escalation.Amount{}) && len(got) > 0 || want != (escalation.Amount{}) && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// No offer causes a panic, and every amount above a bound exceeds it.
func FuzzAmounts(f *testing.F) {
	f.Add([]byte(`{"terms":{"price":{"amount":"3","currency":"EUR"}}}`), "terms.price", 2.0)
	f.Add([]byte(`{"terms":{"a.b":[{"c":9}]}}`), "terms.a.b.0.c", 1.0)
	f.Fuzz(func(t *testing.T, body []byte, path string, most float64) {
		bound := escalation.Bound{RulingsAuthority: performatives.RulingsAuthority{MaxAmount: &most, TermPath: path}}
		for _, a := range bound.AmountsIn(body) {
			if _, exceeded := bound.Exceeded([]escalation.Amount{a}); a.Value > most && !exceeded {
				t.Errorf("%+v is within %g", a, most)
			}
		}
	})
}
