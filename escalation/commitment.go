package escalation

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// binds judges what a pledge binds its side to besides the terms that a bound names: what it has to pay, and what a
// commitment adds. A replay does not judge it: earlier releases did not.
func (b *Bound) binds(p Pledge) *Excess {
	if p.Side == "" {
		return nil
	}
	if b.TermsHash != "" && p.Commitment != nil {
		if excess := b.addsTo(p); excess != nil {
			return excess
		}
	}
	caps := b.caps()
	if len(caps) == 0 {
		return nil
	}
	var found []Amount
	for _, body := range p.Bodies {
		amounts, unread := owed(decoded(body), p.Side, nil)
		if unread != "" {
			return caps[0].exceededBy(nil, unread)
		}
		found = append(found, amounts...)
	}
	for _, a := range found {
		within := func(l limit) bool { return l.exceededBy([]Amount{a}, "") == nil }
		if !slices.ContainsFunc(caps, within) {
			return caps[0].exceededBy([]Amount{a}, "")
		}
	}
	return nil
}

// addsTo judges what a commitment adds to terms that were approved exactly: obligations and penalties. Without a bound
// of money, no amount in them is above all that the human saw. The commitment that a human saw itself may say anything.
func (b *Bound) addsTo(p Pledge) *Excess {
	if b.Shown != "" && b.Shown == p.CommitmentTerms {
		return nil
	}
	commitment, approved := decoded(p.Commitment), map[string]any{}
	for _, body := range p.Bodies[1:] { // the proposal that it carries out
		maps.Copy(approved, termsOf(decoded(body)))
	}
	adds := termsOf(commitment)
	for _, name := range slices.Sorted(maps.Keys(adds)) {
		switch {
		case reflect.DeepEqual(approved[name], adds[name]):
			delete(adds, name)
		case name != "obligations" && name != "penalties":
			return &Excess{Path: "terms." + name, Why: "terms." + name + " is not in the terms that were shown to the human"}
		}
	}
	if !b.exactEscrow() {
		return nil
	}
	saw, _ := amountsAnywhere(map[string]any{"terms": approved})
	saw = append(saw, *b.Escrow)
	agreed, _ := approved["obligations"].([]any)
	found, unread := owed(commitment, p.Side, agreed)
	if penalties, has := adds["penalties"]; has && unread == "" {
		var more []Amount
		more, unread = amountsAnywhere(map[string]any{"terms": map[string]any{"penalties": penalties, "currency": approved["currency"]}})
		found = append(found, more...)
	}
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
			all = append(all, limit{RulingsBound: performatives.RulingsBound{TermPath: l.TermPath, Max: most, Currency: currency}, strict: b.Strict})
		}
	}
	return all
}

// owed are the amounts of a side's obligations in the body of an offer, but for those that are agreed already.
func owed(body any, side performatives.Agent, agreed []any) (found []Amount, unread string) {
	all, _ := termsOf(body)["obligations"].([]any)
	for i, o := range all {
		obligation, _ := o.(map[string]any)
		amount, has := obligation["amount"]
		same := func(a any) bool { return reflect.DeepEqual(a, o) }
		if !has || amount == nil || obligation["party"] != string(side) || slices.ContainsFunc(agreed, same) {
			continue
		}
		path := "terms.obligations." + strconv.Itoa(i) + ".amount"
		if a, ok := amountOf(amount, obligation, body, path); ok {
			found = append(found, a)
		} else if unread == "" {
			unread = path
		}
	}
	return found, unread
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
