package escalation

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// binds judges what a pledge binds its side to besides the terms that a bound names: what it has to pay, and what a
// commitment adds. What a human approved as it was shown may say anything. A replay does not judge it: earlier releases
// did not.
func (b *Bound) binds(p Pledge) *Excess {
	switch {
	case p.Side == "":
		return nil
	case p.Commitment != nil && b.Shown != "" && b.Shown == p.CommitmentTerms:
		return nil
	case p.Commitment == nil && b.Shown != "" && b.Shown == p.Terms:
		return nil
	}
	approved := map[string]any{}
	if b.Shown != "" && b.Shown == p.Terms || b.TermsHash != "" && b.TermsHash == p.Terms {
		for _, body := range p.Bodies[1:] { // the proposal that a commitment carries out
			maps.Copy(approved, termsOf(decoded(body)))
		}
	}
	if b.TermsHash != "" && p.Commitment != nil {
		if excess := b.addsTo(p, approved); excess != nil {
			return excess
		}
	}
	for _, c := range b.Ceilings {
		if excess := b.underCeiling(p, c); excess != nil {
			return excess
		}
	}
	caps := b.caps()
	if len(caps) == 0 {
		return nil
	}
	for _, body := range p.Bodies {
		found, unread := owed(decoded(body), p.Side, obligationsOf(approved))
		if unread != "" {
			return caps[0].exceededBy(nil, unread)
		}
		if excess := above(caps, found); excess != nil {
			return excess
		}
	}
	return nil
}

// underCeiling judges each amount that a pledge names, besides what was approved as it was shown: a human with a ceiling
// granted no other.
func (b *Bound) underCeiling(p Pledge, c Grant) *Excess {
	bodies, shown := p.Bodies, map[string]any{}
	switch {
	case c.Shown == "":
	case p.Commitment != nil && c.Shown == p.CommitmentTerms, p.Commitment == nil && c.Shown == p.Terms:
		return nil
	case p.Commitment != nil && c.Shown == p.Terms:
		for _, body := range p.Bodies[1:] { // the proposal that a commitment carries out
			maps.Copy(shown, termsOf(decoded(body)))
		}
		bodies = bodies[:1]
	}
	alone := Bound{RulingsAuthority: c.RulingsAuthority, Strict: b.Strict, Amounts: b.Amounts}
	caps := slices.DeleteFunc(alone.caps(), func(l limit) bool { return !l.single && l.Currency == "" }) // a quantity, perhaps
	if len(caps) == 0 {                                                                                  // no amount was granted
		caps = []limit{{RulingsBound: performatives.RulingsBound{Max: new(float64)}}}
	}
	for _, body := range bodies {
		found, unread := amountsAt(besides(decoded(body), shown), b.Amounts)
		if unread != "" {
			return caps[0].exceededBy(nil, unread)
		}
		if excess := above(caps, found); excess != nil {
			return excess
		}
	}
	return nil
}

// besides is a body without those of its terms and obligations that others have, too.
func besides(body any, terms map[string]any) any {
	left := maps.Clone(termsOf(body))
	for name, value := range left {
		if name != "currency" && reflect.DeepEqual(terms[name], value) {
			delete(left, name)
		}
	}
	if all, is := left["obligations"].([]any); is {
		others, kept := obligationsOf(terms), slices.Clone(all)
		for i, o := range kept {
			if obligation, _ := o.(map[string]any); others[sayingOf(obligation)] {
				kept[i] = nil
			}
		}
		left["obligations"] = kept
	}
	return map[string]any{"terms": left}
}

// above finds an amount that is above all caps.
func above(caps []limit, found []Amount) *Excess {
	for _, a := range found {
		within := func(l limit) bool { return l.exceededBy([]Amount{a}, "") == nil }
		if !slices.ContainsFunc(caps, within) {
			return caps[0].exceededBy([]Amount{a}, "")
		}
	}
	return nil
}

// addsTo judges what a commitment adds to terms that were approved exactly: obligations besides those approved, and
// penalties where none were. Without a bound of money, no amount of what it adds is above all that the human saw.
func (b *Bound) addsTo(p Pledge, approved map[string]any) *Excess {
	commitment := decoded(p.Commitment)
	whole, _ := commitment.(map[string]any)
	other := func(path string) *Excess {
		return &Excess{Path: path, Why: path + " is not as in the terms that were shown to the human"}
	}
	adds := termsOf(commitment)
	for _, name := range slices.Sorted(maps.Keys(adds)) {
		was, had := approved[name]
		if name != "obligations" && (had || name != "penalties") && !reflect.DeepEqual(was, adds[name]) {
			return other("terms." + name)
		}
	}
	for _, name := range []string{"deadline", "escrow"} {
		if was, had := approved[name]; had && whole[name] != nil && !reflect.DeepEqual(was, whole[name]) {
			return other(name)
		}
	}
	agreed, has := obligationsOf(approved), obligationsOf(adds)
	for o := range agreed {
		if !has[o] && len(has) > 0 {
			return other("terms.obligations")
		}
	}
	found, unread := p.adds(approved)
	if caps := b.caps(); !b.exactEscrow() {
		switch {
		case len(caps) == 0:
			return nil
		case unread != "":
			return caps[0].exceededBy(nil, unread)
		}
		return above(caps, found)
	}
	saw, _ := amountsAnywhere(map[string]any{"terms": approved})
	saw = append(saw, *b.Escrow)
	for _, a := range found {
		within := func(s Amount) bool {
			return a.Value <= s.Value && (a.Currency == "" || s.Currency == "" || strings.EqualFold(a.Currency, s.Currency))
		}
		if !slices.ContainsFunc(saw, within) {
			return &Excess{Amount: &a, Path: a.Path, Why: "it says " + Money(a.Value, a.Currency) + " at " + a.Path}
		}
	}
	return limit{}.exceededBy(nil, unread)
}

// Owed are the amounts that a pledge obliges its side to.
func (p Pledge) Owed() (all []Amount) {
	for _, body := range p.Bodies {
		found, _ := owed(decoded(body), p.Side, nil)
		all = append(all, found...)
	}
	return all
}

// Named are the amounts that the terms name, whoever pays them, and where one is that cannot be read. Where a rule says at
// which paths amounts stand, and one stands there, there are no others.
func (p Pledge) Named(paths []string) (all []Amount, unread string) {
	for _, body := range p.Bodies {
		found, not := amountsAt(decoded(body), paths)
		all, unread = append(all, found...), cmp.Or(unread, not)
	}
	return all, unread
}

func amountsAt(body any, paths []string) (found []Amount, unread string) {
	stands := false
	for _, path := range paths {
		in := path
		if at, _, is := lookUp(body, &in); !is || isNoAmount(at, "") {
			continue
		}
		stands = true
		more, not := amounts(body, []string{path}, true)
		found, unread = append(found, more...), cmp.Or(unread, not)
	}
	if !stands {
		return amountsNamed(body)
	}
	return found, unread
}

// OverCeiling reports whether an authority allows an amount, in whatever bound, that a human with these limits may not grant.
func OverCeiling(limits []performatives.Limit, granted *performatives.RulingsAuthority) bool {
	b := Bound{RulingsAuthority: *granted}
	return slices.ContainsFunc(b.caps(), func(l limit) bool {
		return (l.single || l.Currency != "") && *l.Max > Ceiling(limits, currencyOf(l.Currency, limits))
	})
}

// caps are the highest amounts of money that the bounds allow, each at its path.
func (b *Bound) caps() (all []limit) {
	for _, l := range b.limits() {
		most, currency := l.Max, l.Currency
		if l.Equals != nil {
			a, readable := amountOf(decoded(l.Equals), nil, nil, l.TermPath)
			if !readable {
				continue
			}
			if most = &a.Value; currency == "" {
				currency = a.Currency
			}
		}
		if most != nil && (l.single || currency != "" || namesAmount(l.TermPath[strings.LastIndexByte(l.TermPath, '.')+1:])) {
			all = append(all, limit{RulingsBound: performatives.RulingsBound{TermPath: l.TermPath, Max: most, Currency: currency}, strict: b.Strict, single: l.single})
		}
	}
	return all
}

// obligationsOf are the obligations in terms, each as its canonical text.
func obligationsOf(terms map[string]any) map[string]bool {
	all, _ := terms["obligations"].([]any)
	said := make(map[string]bool, len(all))
	for _, o := range all {
		obligation, _ := o.(map[string]any)
		said[sayingOf(obligation)] = true
	}
	return said
}

// sayingOf is what an obligation says, whatever its id.
func sayingOf(obligation map[string]any) string {
	said := maps.Clone(obligation)
	delete(said, "id")
	text, _ := json.Marshal(said, json.Deterministic(true)) // it was JSON
	return string(text)
}

// termsOf are the terms in an offer's body.
func termsOf(body any) map[string]any {
	object, _ := body.(map[string]any)
	terms, _ := object["terms"].(map[string]any)
	return terms
}

func decoded(value jsontext.Value) (v any) {
	_ = json.Unmarshal(value, &v) // what is no JSON says nothing
	return v
}
