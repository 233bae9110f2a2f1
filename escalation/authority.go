package escalation

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A Bound limits what a side may agree to after a ruling, until the next ruling
// (PROTOCOL.md §7).
type Bound struct {
	performatives.RulingsAuthority
	Escalation ID
	Amounts    []string // paths to search for the amount if there is no termPath
}

// AmountsIn returns the amounts in an offer's body that the bound applies to.
func (b *Bound) AmountsIn(body jsontext.Value) []Amount {
	if b.TermPath != "" {
		return Amounts(body, []string{b.TermPath})
	}
	return Amounts(body, b.Amounts)
}

// Expired reports whether the authority has ended at a time.
func (b *Bound) Expired(at time.Time) bool { return b.ValidUntil != nil && !at.Before(*b.ValidUntil) }

// Exceeded returns the first amount that is above the bound or in another currency.
func (b *Bound) Exceeded(seen []Amount) (Amount, bool) {
	if b.MaxAmount == nil {
		return Amount{}, false
	}
	for _, a := range seen {
		if a.Value > *b.MaxAmount || a.Currency != "" && b.Currency != "" && a.Currency != b.Currency {
			return a, true
		}
	}
	return Amount{}, false
}

func (b *Bound) String() string {
	var out strings.Builder
	if b.MaxAmount != nil {
		out.WriteString("up to " + Money(*b.MaxAmount, b.Currency))
	}
	if b.TermPath != "" {
		out.WriteString(" at " + b.TermPath)
	}
	if b.ValidUntil != nil {
		out.WriteString(" until " + b.ValidUntil.UTC().Format(time.RFC3339))
	}
	return strings.TrimSpace(out.String())
}

// Money writes an amount for people.
func Money(value float64, currency string) string {
	return strings.TrimSpace(fmt.Sprintf("%.10g %s", value, currency))
}

// Intersect returns the authority that two approvals both grant. They must be
// about the same amount.
func Intersect(a, b *performatives.RulingsAuthority) (*performatives.RulingsAuthority, error) {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a, nil
	}
	both := *a
	if b.MaxAmount != nil {
		if a.MaxAmount != nil && (a.Currency != b.Currency || a.TermPath != b.TermPath) {
			return nil, fmt.Errorf("the approval before yours is about an amount in %s at %s, yours about one in %s at %s: approve the same, or deny",
				orAny(a.Currency, "any currency"), orAny(a.TermPath, "any path"), orAny(b.Currency, "any currency"), orAny(b.TermPath, "any path"))
		}
		if a.MaxAmount == nil || *b.MaxAmount < *a.MaxAmount {
			both.MaxAmount, both.Currency, both.TermPath = b.MaxAmount, b.Currency, b.TermPath
		}
	}
	if b.ValidUntil != nil && (a.ValidUntil == nil || b.ValidUntil.Before(*a.ValidUntil)) {
		both.ValidUntil = b.ValidUntil
	}
	return &both, nil
}

func orAny(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Granted is the authority that an approval grants. If a human with a ceiling
// (limited) sets no bound, it is the amount that was shown to be at stake; false
// if there is no such amount, because the human must set a bound then.
func (i *Item) Granted(said *performatives.RulingsAuthority, limited bool) (granted *performatives.RulingsAuthority, ok bool) {
	switch {
	case !limited:
		return said, true
	case said != nil && said.MaxAmount != nil:
		bound := *said
		if bound.Currency == "" && i.Amount != nil {
			bound.Currency = i.Amount.Currency
		}
		return &bound, true
	}
	if i.Amount == nil {
		return nil, false
	}
	var bound performatives.RulingsAuthority
	if said != nil {
		bound = *said
	}
	value := i.Amount.Value
	bound.MaxAmount, bound.Currency, bound.TermPath = &value, i.Amount.Currency, i.Amount.Path
	return &bound, true
}

// Within reports whether a human with these limits may grant an authority.
func Within(limits []performatives.Limit, granted *performatives.RulingsAuthority) bool {
	if len(limits) == 0 {
		return true
	}
	return granted != nil && granted.MaxAmount != nil && *granted.MaxAmount <= Ceiling(limits, currencyOf(granted.Currency, limits))
}
