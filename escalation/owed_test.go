package escalation_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// What a commitment adds to exact terms of 500 USD is no money above that, however it says it.
func TestAddedToExactTerms(t *testing.T) {
	const side = performatives.Agent("agent://acme.com/alpha")
	proposal, hash := jsontext.Value(`{"terms":{"price":500,"currency":"USD"}}`), performatives.HashOf(jsontext.Value(`{"price":500,"currency":"USD"}`))
	bound := escalation.Bound{RulingsAuthority: performatives.RulingsAuthority{TermsHash: hash}, Escrow: &escalation.Amount{Value: 500, Currency: "USD"}, Strict: true}
	within := func(what, terms string) bool {
		t.Helper()
		commitment := jsontext.Value(`{"terms":` + terms + `}`)
		if !commitment.IsValid() {
			t.Fatalf("%s is no JSON", what)
		}
		return bound.Exceeded(escalation.Pledge{Bodies: []jsontext.Value{commitment, proposal}, Terms: hash, Side: side, Commitment: commitment}) == nil
	}
	for _, c := range []struct {
		within    bool
		penalties string // each on a line
	}{
		{true, `
			"none"
			"as in the master agreement"
			null
			50
			"50"
			"50 USD"
			"USD 50.25, within 14 days"
			"$500 after 2 weeks"
			{"late":50,"currency":"USD"}
			{"late":{"value":50,"currency":"usd"},"graceDays":900,"maxDelayHours":720,"id":"late-1"}
			{"after":"2026-12-31T00:00:00+02:00","pays":50}
			[{"when":"late","pays":"20"},{"when":"never","pays":30}]
		`},
		{false, `
			99999
			"99999"
			{"late":99999}
			{"perDay":"99999"}
			[{"when":"late","pays":99999,"currency":"USD"}]
			{"late":50,"currency":"EUR"}
			{"currency":"EUR","late":{"value":50}}
			{"USD":50}
			{"lateEUR":50}
			{"late":50,"unit":"EUR"}
			{"99999 USD":true}
			{"percentOfRevenue":100}
			"99,999 USD per day"
			"USD 99999 a day"
			"5% a day"
			"50 EUR"
			"€50"
			"USD 4 million"
			"USD 4 bn"
			"$4m"
			"USD 4e6"
			"USD 4*1000000"
			"USD 5 times the price"
			"USD 499,999 month-end"
			"USD 999 weeks"
			"USD 4 000 000"
			"USD 4\u00a0000\u00a0000"
			"4\u00a0000 USD"
			"4\u202f000 USD"
			"4_000 USD"
			"4\u02bc000 USD"
			"USD \u096a\u096a\u096a"
			"USD 4½"
			"lot 1 USD 99999"
			"5 USD 99999"
			"USD 1 USD 99999"
			"4 USD million"
			"5 kUSD"
			"99999 USDC"
			"99999 sek"
			"400 pounds"
			"one million dollars"
			"one million"
			"fifty grand"
			"twice the price for each day"
			{"amount":"one million"}
			{"feePerDays":99999}
			{"id":99999}
			{"id":{"late":99999}}
			{"id":"99999 USD per day"}
			{"currency":"99999 USD per day"}
			"USD 499 999 month-end"
			"USD 4, 000 month-end"
			"USD 4 mn"
			"USD 4 MM"
			"USD 4 Mrd"
			"USD 4 Millionen"
			"USD 4 tenfold"
			"1.500 USD"
		`},
	} {
		for _, said := range strings.Fields(strings.NewReplacer(" ", "\x00", "\t", "").Replace(c.penalties)) {
			said = strings.ReplaceAll(said, "\x00", " ")
			if got := within(said, `{"obligations":[],"penalties":`+said+`}`); got != c.within {
				t.Errorf("penalties %s: %t", said, got)
			}
		}
	}
	for said, want := range map[string]bool{
		`"action":"pay"`: true,
		`"action":"pay 400 USD within 30 days, by 2026-12-31"`:                                               true,
		`"action":"pay $400.50","quantity":4000,"unit":"boxes","id":"o-7-USD"`:                               true,
		`"action":"pay","amount":{"value":500,"currency":"USD"}`:                                             true,
		`"action":"deliver 2000 boxes to San Francisco","verificationMethod":"invoice 99999"`:                true,
		`"action":"translate 99999 pages into European Portuguese","neuro":"yes"`:                            true,
		`"action":"pay","note":"as agreed","deadline":"2030-01-01T00:00:00Z"`:                                true,
		`"action":"deliver the MVP, ALL of it, and CAD drawings"`:                                            true,
		`"action":"pay the price in US dollars within 30 days","verificationMethod":"bank statement in USD"`: true,
		`"action":"pay fifty grand"`:                                                                         false,
		`"action":"owes beta 99999 more"`:                                                                    false,
		`"action":"pay 99999"`:                                                                               false,
		`"action":"transfer 99,999 on delivery"`:                                                             false,
		`"action":"pay 99999 rubles"`:                                                                        false,
		`"action":"pay USD 499 999 month-end"`:                                                               false,
		`"action":"pay","feeDays":99999`:                                                                     false,
		`"action":"pay","price":"one million"`:                                                               false,
		`"action":"pay","currency":"USD 99999"`:                                                              false,
		`"action":"pay","fee":5000`:                                                                          false,
		`"action":"pay","sum":99999`:                                                                         false,
		`"action":"pay","rent":"99999"`:                                                                      false,
		`"action":"pay","priceUSD":400`:                                                                      false,
		`"action":"pay","deposit":400,"currency":"EUR"`:                                                      false,
		`"action":"pay","penalty":99999`:                                                                     false,
		`"action":"pay","penalties":{"late":99999}`:                                                          false,
		`"action":"pay","payment":"5000 USD"`:                                                                false,
		`"action":"pay","total":{"value":5000,"currency":"USD"}`:                                             false,
		`"action":"pay","fee":{"USD":9999}`:                                                                  false,
		`"action":"pay","quantity":99999,"unit":"USD"`:                                                       false,
		`"action":"pay","amount":{"value":500,"currency":"USD","scale":"thousands"}`:                         false,
		`"action":"pay","pay 99999 USD":"yes"`:                                                               false,
		`"action":"pay 99,999 USD"`:                                                                          false,
		`"action":"pay 99.999 USD"`:                                                                          false,
		`"action":"pay 99 999 dollars"`:                                                                      false,
		`"action":"pay 400 EUR"`:                                                                             false,
		`"action":"pay one million dollars"`:                                                                 false,
	} {
		if got := within(said, `{"obligations":[{"party":"`+string(side)+`",`+said+`}]}`); got != want {
			t.Errorf("an obligation with %s: %t", said, got)
		}
		if !within(said, `{"obligations":[{"party":"agent://widgets.co/beta",`+said+`}]}`) {
			t.Errorf("an obligation of the other side with %s is refused", said)
		}
	}
}
