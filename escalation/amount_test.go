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
		`{"terms":{"price":"99999,00"}}`:                                  {},
		`{"terms":{"price":{"USD":99999}}}`:                               {},
		`{"terms":{"price":{"amount":5,"value":99999}}}`:                  {},
		`{"terms":{"price":{"amount":5,"USD":"99999"}}}`:                  {},
		`{"terms":{"price":{"amount":5,"per":"month"}}}`:                  {Value: 5, Path: "terms.price.amount"},
		`{"terms":{"price":[1]}}`:                                         {},
		`{"terms":{"price":{}}}`:                                          {},
		`{"terms":{"price":true}}`:                                        {},
		`{"terms":7}`:                                                     {},
		`[]`:                                                              {},
		`{`:                                                               {},
	} {
		got, _ := escalation.Amounts(jsontext.Value(body), nil, true)
		if want == (escalation.Amount{}) && len(got) > 0 || want != (escalation.Amount{}) && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// A bound at a path that can mean two places is exceeded, whichever of them says less.
func TestAmbiguousPath(t *testing.T) {
	most := 10.0
	single := performatives.RulingsAuthority{MaxAmount: &most, TermPath: "pricing.monthly"}
	equals := performatives.RulingsAuthority{Bounds: []performatives.RulingsBound{{TermPath: "pricing.monthly", Equals: jsontext.Value("5")}}}
	for body, within := range map[string]bool{
		`{"terms":{"pricing":{"monthly":5}}}`:                                           true,
		`{"terms":{"pricing.monthly":5}}`:                                               true,
		`{"terms":{"pricing.monthly":5,"pricing":{"monthly":99999}}}`:                   false,
		`{"terms.pricing.monthly":5,"terms":{"pricing":{"monthly":99999}}}`:             false,
		`{"pricing":{"monthly":5},"terms":{"pricing":{"monthly":99999}}}`:               false,
		`{"terms":{"pricing":{"monthly":5},"terms":{"pricing":{"monthly":"99999.0"}}}}`: true,
	} {
		for _, authority := range []performatives.RulingsAuthority{single, equals} {
			pledge := escalation.Pledge{Bodies: []jsontext.Value{jsontext.Value(body)}}
			bound := escalation.Bound{RulingsAuthority: authority, Strict: true}
			if excess := bound.Exceeded(pledge); within != (excess == nil) {
				t.Errorf("%s: %+v", body, excess)
			}
			bound.Strict = false // what was accepted under format 2 still is
			if excess := bound.Exceeded(pledge); excess != nil {
				t.Errorf("%s, before format 3: %+v", body, excess)
			}
		}
	}
}

// No offer causes a panic; an amount above a bound exceeds it, and so does what
// stands there and cannot be read.
func FuzzAmounts(f *testing.F) {
	f.Add([]byte(`{"terms":{"price":{"amount":"3","currency":"EUR"}}}`), "terms.price", 2.0)
	f.Add([]byte(`{"terms":{"a.b":[{"c":9}]}}`), "terms.a.b.0.c", 1.0)
	f.Add([]byte(`{"terms":{"price":"99999,00"}}`), "price", 1.0)
	f.Fuzz(func(t *testing.T, body []byte, path string, most float64) {
		if path == "" {
			return
		}
		bound := escalation.Bound{RulingsAuthority: performatives.RulingsAuthority{MaxAmount: &most, TermPath: path}, Strict: true}
		found, unread := escalation.Amounts(body, []string{path}, true)
		excess := bound.Exceeded(escalation.Pledge{Bodies: []jsontext.Value{body}})
		if within := len(found) == 1 && unread == "" && !(found[0].Value > most); within != (excess == nil) {
			t.Errorf("%+v, unread %q: %+v", found, unread, excess)
		}
	})
}

// Amounts are written in full: what a human signs is what is meant.
func TestMoney(t *testing.T) {
	for value, want := range map[float64]string{0.05: "0.05 EUR", 1234567890.12: "1234567890.12 EUR", 100.1: "100.1 EUR", 1e15: "1000000000000000 EUR"} {
		if got := escalation.Money(value, "EUR"); got != want {
			t.Errorf("%v is written %q, want %q", value, got, want)
		}
	}
}

// What is approved exactly is the same number to its last digit. A text of digits that is no amount is compared as a text.
func TestExactly(t *testing.T) {
	for name, c := range map[string]struct {
		path, equals, currency, terms string
		within                        bool
	}{
		"the account":             {"account", `"12345678901234567890"`, "", `{"account":"12345678901234567890"}`, true},
		"another account":         {"account", `"12345678901234567890"`, "", `{"account":"12345678901234567891"}`, false},
		"zeros before it":         {"account", `"7"`, "", `{"account":"007"}`, false},
		"a number for a text":     {"account", `"007"`, "", `{"account":7}`, false},
		"a number":                {"quantity", `1000`, "", `{"quantity":1000}`, true},
		"a number as a text":      {"quantity", `1000`, "", `{"quantity":"1000.0"}`, true},
		"an amount":               {"price", `"1.10"`, "", `{"price":"1.1"}`, true},
		"an amount as a number":   {"price", `"1.10"`, "", `{"price":1.1}`, true},
		"an amount in an object":  {"price", `1.1`, "EUR", `{"price":{"amount":"1.10","currency":"eur"}}`, true},
		"in a currency":           {"deposit", `"1.10"`, "EUR", `{"deposit":"1.1"}`, true},
		"another amount":          {"price", `"9007199254740993"`, "", `{"price":"9007199254740992"}`, false},
		"another, in an object":   {"price", `"1.10"`, "", `{"price":{"amount":"1.1000000000000000001"}}`, false},
		"another, of many digits": {"price", `1`, "", `{"price":"1.000000000000000000001"}`, false},
		"led astray":              {"price", `5`, "", `{"price":{"amount":"5"},"price.amount":{}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			authority := performatives.RulingsAuthority{Bounds: []performatives.RulingsBound{{TermPath: "terms." + c.path, Equals: jsontext.Value(c.equals), Currency: c.currency}}}
			bound := escalation.Bound{RulingsAuthority: authority, Strict: true}
			pledge := escalation.Pledge{Bodies: []jsontext.Value{jsontext.Value(`{"terms":` + c.terms + `}`)}, Side: "agent://acme.com/buyer"}
			if excess := bound.Exceeded(pledge); c.within != (excess == nil) {
				t.Errorf("%+v", excess)
			}
			pledge.Side = "" // replayed: what was accepted before is
			if excess := bound.Exceeded(pledge); excess != nil {
				t.Errorf("replayed: %+v", excess)
			}
		})
	}
}
