package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// Money writes an amount for people.
func Money(value float64, currency string) string {
	return strings.TrimSpace(strconv.FormatFloat(value, 'f', -1, 64) + " " + currency)
}

// Intersect returns the authority that two approvals both grant. The single form
// must be about the same amount; lists of bounds are joined.
func Intersect(a, b *performatives.RulingsAuthority) (*performatives.RulingsAuthority, error) {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a, nil
	}
	both := *a
	if b.Scope != performatives.ThreadScope {
		both.Scope = b.Scope // what one of them grants in the whole session binds there
	}
	if b.MaxAmount != nil {
		if a.MaxAmount != nil && (!strings.EqualFold(a.Currency, b.Currency) || a.TermPath != b.TermPath) {
			return nil, fmt.Errorf("the approval before yours is about an amount in %s at %s, yours about one in %s at %s: approve the same, or deny",
				orAny(a.Currency, "any currency"), orAny(a.TermPath, "any path"), orAny(b.Currency, "any currency"), orAny(b.TermPath, "any path"))
		}
		if a.MaxAmount == nil || *b.MaxAmount < *a.MaxAmount {
			both.MaxAmount, both.Currency, both.TermPath = b.MaxAmount, b.Currency, b.TermPath
		}
	}
	for _, bound := range b.Bounds {
		if !slices.ContainsFunc(both.Bounds, func(o performatives.RulingsBound) bool { return o.String() == bound.String() }) {
			both.Bounds = append(slices.Clip(both.Bounds), bound)
		}
	}
	if a.TermsHash != "" && b.TermsHash != "" && a.TermsHash != b.TermsHash {
		return nil, errors.New("the approval before yours is of other terms: approve the same, or deny")
	}
	if both.TermsHash == "" {
		both.TermsHash = b.TermsHash
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
// (limited) sets no bound on the amount, it is the amount that was shown to be at
// stake, and where the rules allow that, the terms that were shown. It is false if
// neither is possible, because the human must set a bound then.
func (i *Item) Granted(said *performatives.RulingsAuthority, limited bool) (granted *performatives.RulingsAuthority, ok bool) {
	if !limited {
		return said, true
	}
	var bound performatives.RulingsAuthority
	if said != nil {
		bound = *said
	}
	switch {
	case bound.MaxAmount != nil:
		if bound.Currency == "" && i.Amount != nil {
			bound.Currency = i.Amount.Currency
		}
	case i.Amount != nil:
		if !slices.ContainsFunc(bound.Bounds, i.limitsAmount) {
			value := i.Amount.Value
			bound.MaxAmount, bound.Currency, bound.TermPath = &value, i.Amount.Currency, i.Amount.Path
		}
	case slices.ContainsFunc(bound.Bounds, func(b performatives.RulingsBound) bool { _, most := atMost(b); return most && b.Currency != "" }):
	case i.NonMonetary() && (bound.TermsHash == "" || bound.TermsHash == i.Terms):
		bound.TermsHash = i.Terms
	default:
		return nil, false
	}
	return &bound, true
}

// Frees reports whether an authority limits another amount than the one at stake, which it leaves free.
func (i *Item) Frees(a *performatives.RulingsAuthority) bool {
	return i.Amount != nil && a != nil && a.MaxAmount != nil && a.TermPath != "" && !samePath(a.TermPath, i.Amount.Path) && !slices.ContainsFunc(a.Bounds, i.limitsAmount)
}

// limitsAmount reports whether a bound names the highest value of the amount at stake.
func (i *Item) limitsAmount(b performatives.RulingsBound) bool {
	_, most := atMost(b)
	return most && b.Currency != "" && samePath(b.TermPath, i.Amount.Path)
}

func samePath(a, b string) bool {
	short := func(path string) string {
		path = strings.TrimPrefix(path, "terms.")
		return strings.TrimSuffix(strings.TrimSuffix(path, ".amount"), ".value")
	}
	return short(a) == short(b)
}

// atMost is the highest value that a bound allows.
func atMost(b performatives.RulingsBound) (most float64, ok bool) {
	if b.Max != nil {
		return *b.Max, true
	}
	var only any
	if json.Unmarshal(b.Equals, &only) != nil {
		return 0, false
	}
	return number(only)
}

// NonMonetary reports whether a human with a ceiling may approve the terms as they
// were shown: the rules say so, and no amount is at stake, not even one that
// cannot be read.
func (i *Item) NonMonetary() bool {
	return i.Route != nil && i.Route.NonMonetary != "" && i.Amount == nil && !i.Unreadable && i.Terms != ""
}

// Within reports whether a human with these limits may grant an authority.
func Within(limits []performatives.Limit, granted *performatives.RulingsAuthority) bool {
	if len(limits) == 0 {
		return true
	}
	if granted == nil {
		return false
	}
	some := granted.TermsHash != ""
	for _, l := range limitsOf(granted) {
		most, ok := atMost(l.RulingsBound)
		if !ok || !l.single && l.Currency == "" {
			continue
		}
		if some = true; most > Ceiling(limits, currencyOf(l.Currency, limits)) {
			return false
		}
	}
	return some
}

// ChangesNothing reports whether a modification allows just what the offer at
// stake says.
func ChangesNothing(a *performatives.RulingsAuthority, i *Item, body jsontext.Value) bool {
	if a == nil {
		return true
	}
	if a.ValidUntil != nil || a.TermsHash != "" && a.TermsHash != i.Terms {
		return false
	}
	var v any
	if json.Unmarshal(body, &v) != nil {
		v = nil
	}
	for _, l := range limitsOf(a) {
		at, ok := i.Amount, i.Amount != nil
		if len(l.paths) > 0 {
			path := l.TermPath
			found, in, _ := lookUp(v, &path)
			if l.Equals != nil {
				if l.exact = true; !l.in(v) || l.differs(v) != nil {
					return false
				}
				continue
			}
			var a Amount
			a, ok = amountOf(found, in, v, path)
			at = &a
		}
		if !ok || l.Max != nil && at.Value != *l.Max || l.Min != nil && at.Value != *l.Min ||
			l.Currency != "" && !strings.EqualFold(l.Currency, at.Currency) {
			return false
		}
	}
	return true
}

// Free returns the terms of an offer that an authority leaves free, of the paths that the
// offer has. A maxAmount without a path is about the amount at stake.
func Free(a *performatives.RulingsAuthority, paths []string, at *Amount) (free []string) {
	if a == nil {
		return paths
	}
	if a.TermsHash != "" {
		return nil
	}
	limits := limitsOf(a)
	for i := range limits {
		if limits[i].TermPath == "" && at != nil {
			limits[i].TermPath = at.Path
		}
	}
	for _, path := range paths {
		if !slices.ContainsFunc(limits, func(l limit) bool { return l.binds(path) }) {
			free = append(free, path)
		}
	}
	return free
}

// binds reports whether the limit is on a term, on what it is in, or on the amount whose
// currency it is.
func (l limit) binds(path string) bool {
	bound, path := strings.TrimPrefix(l.TermPath, "terms."), strings.TrimPrefix(path, "terms.")
	beside := bound[:strings.LastIndex(bound, ".")+1] + "currency"
	return path == bound || strings.HasPrefix(path, bound+".") || l.Currency != "" && path == beside
}
