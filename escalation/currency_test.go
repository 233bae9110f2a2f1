package escalation_test

import (
	"testing"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Currencies compare whatever their case: a ceiling in USD holds for 5 usd.
func TestCurrencies(t *testing.T) {
	limits := []performatives.Limit{{Currency: "USD", MaxAmount: 10}, {Currency: "EUR", MaxAmount: 5}}
	if got := escalation.Ceiling(limits, "usd"); got != 10 {
		t.Errorf("the ceiling in usd is %v", got)
	}
	five := 5.0
	a := &performatives.RulingsAuthority{MaxAmount: &five, Currency: "usd"}
	if _, err := escalation.Intersect(a, &performatives.RulingsAuthority{MaxAmount: &five, Currency: "USD"}); err != nil {
		t.Error(err)
	}
}

// Two approvals allow what both do.
func TestIntersectBounds(t *testing.T) {
	one, two := 1.0, 2.0
	price, seats := performatives.RulingsBound{TermPath: "terms.price", Max: &one}, performatives.RulingsBound{TermPath: "terms.seats", Min: &two}
	both, err := escalation.Intersect(
		&performatives.RulingsAuthority{Bounds: []performatives.RulingsBound{price}},
		&performatives.RulingsAuthority{Bounds: []performatives.RulingsBound{price, seats}, TermsHash: performatives.NoHash})
	if err != nil || len(both.Bounds) != 2 || both.TermsHash != performatives.NoHash {
		t.Errorf("%+v, %v", both, err)
	}
	if _, err := escalation.Intersect(both, &performatives.RulingsAuthority{TermsHash: performatives.HashOf(nil)}); err == nil {
		t.Error("approvals of different terms have something in common")
	}
}
