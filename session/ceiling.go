package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// mayOblige refuses an approval of an offer as it is, where it names an amount above the human's ceiling, or obliges the
// side to one.
func (t *Command) mayOblige(item *escalation.Item, ruling performatives.RulingData, granted *performatives.RulingsAuthority, atStake *Offer) error {
	if atStake == nil || ruling.Decision != performatives.Approved || !t.From.Limited || t.event.Replayed {
		return nil
	}
	p := t.pledgeOf(atStake)
	p.Side = item.Principal
	var named []escalation.Amount
	var unread string
	if t.approvedAsShown(item, atStake, *granted) != "" { // else the offer is not allowed as it is
		named, unread = p.Named(amountsOf(item))
	}
	instead := "modify it"
	if item.Confirms() {
		instead = "deny it"
	}
	if unread != "" {
		can := t.whoCan(item, &performatives.RulingsAuthority{})
		return Refuse(AuthorityExceeded, "what stands at %s cannot be read, and may be above your ceiling, %s: %s; who can approve it: %s", unread, ceilings(t.From.Limits), instead, nobodyElse(can)).
			With(map[string]any{"escalationId": item.ID, "limits": t.From.Limits, "whoCan": can, "path": unread})
	}
	for n, a := range slices.Concat(named, p.Owed()) {
		owes := &performatives.RulingsAuthority{MaxAmount: &a.Value, Currency: a.Currency}
		if !escalation.Within(t.From.Limits, owes) {
			can, what := t.whoCan(item, owes), "it obliges "+string(item.Principal)+" to"
			if n < len(named) {
				what = "it names"
			}
			return Refuse(AuthorityExceeded, "%s %s at %s, which is above your ceiling, %s: %s; who can approve it: %s",
				what, escalation.Money(a.Value, a.Currency), a.Path, ceilings(t.From.Limits), instead, nobodyElse(can)).
				With(map[string]any{"escalationId": item.ID, "limits": t.From.Limits, "whoCan": can, "amount": a})
		}
	}
	return nil
}

// approvedAsShown is what is approved as it is at stake, by an authority that allows it: the terms of a proposal, or what a
// commitment says. "" is nothing.
func (t *Command) approvedAsShown(item *escalation.Item, o *Offer, granted performatives.RulingsAuthority) performatives.Hash {
	if o == nil {
		return ""
	}
	alone := escalation.Bound{RulingsAuthority: granted, Strict: !t.Before(3), Amounts: amountsOf(item)}
	if alone.Exceeded(t.pledgeOf(o)) != nil { // without a side it judges the bounds alone
		return ""
	}
	return cmp.Or(commitmentTerms(o), item.Terms)
}

// amountsOf are the paths at which the rules say that amounts stand.
func amountsOf(item *escalation.Item) []string {
	if item.Route == nil {
		return nil
	}
	return item.Route.Amounts
}

func ceilings(limits []performatives.Limit) string {
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = escalation.Money(l.MaxAmount, l.Currency)
	}
	return strings.Join(all, ", ")
}

func nobodyElse(agents []performatives.Agent) string {
	if len(agents) == 0 {
		return "nobody; approve less, or deny"
	}
	return list(agents)
}
