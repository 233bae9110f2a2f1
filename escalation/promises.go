package escalation

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// promised judges what a commitment, or an amendment, says besides the terms. Exact terms leave it no others, and its
// amounts as much as an escrow. Bounds of money leave what a party has to pay the most that any of them allows.
func (b *Bound) promised(p Pledge) *Excess {
	var v any
	if p.Promises == nil || b.Shown != "" && b.Shown == p.Promised || json.Unmarshal(p.Promises, &v) != nil {
		return nil
	}
	if b.TermsHash != "" {
		if path := besides(v, p.Bodies); path != "" {
			return &Excess{Path: path, Why: path + " is not in the terms that were shown to the human"}
		}
	}
	if b.exactEscrow() {
		l := limit{RulingsBound: performatives.RulingsBound{Max: &b.Escrow.Value, Currency: b.Escrow.Code()}, strict: b.Strict}
		return l.exceededBy(amountsAnywhere(v))
	}
	found, unread := owed(v)
	limits := slices.DeleteFunc(b.limits(), func(l limit) bool { return !l.money() })
	if len(limits) == 0 {
		return nil
	}
	for _, a := range found {
		within := func(l limit) bool { return l.exceededBy([]Amount{a}, "") == nil }
		if !slices.ContainsFunc(limits, within) {
			return limits[0].exceededBy([]Amount{a}, "")
		}
	}
	return limits[0].exceededBy(nil, unread)
}

// besides is the path of a term of a commitment that neither carries out terms nor is one of theirs, "" for none.
func besides(commitment any, bodies []jsontext.Value) string {
	terms, _, _ := performatives.Find(commitment, "terms")
	object, _ := terms.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name == "obligations" || name == "penalties" {
			continue
		}
		shown := slices.ContainsFunc(bodies[1:], func(body jsontext.Value) bool {
			var proposal struct {
				Terms map[string]any `json:"terms"`
			}
			return json.Unmarshal(body, &proposal) == nil && reflect.DeepEqual(proposal.Terms[name], object[name])
		})
		if !shown {
			return "terms." + name
		}
	}
	return ""
}

// owed are the amounts of the obligations of a commitment.
func owed(commitment any) (found []Amount, unread string) {
	at, _, _ := performatives.Find(commitment, "terms.obligations")
	all, _ := at.([]any)
	for i, o := range all {
		obligation, _ := o.(map[string]any)
		amount, has := obligation["amount"]
		if !has {
			continue
		}
		path := "terms.obligations." + strconv.Itoa(i) + ".amount"
		if a, ok := amountOf(amount, obligation, commitment, path); ok {
			found = append(found, a)
		} else if unread == "" {
			unread = path
		}
	}
	return found, unread
}
