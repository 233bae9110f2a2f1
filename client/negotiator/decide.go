package negotiator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Acts of a decision.
const (
	Propose  = "PROPOSE"
	Accept   = "ACCEPT"
	Counter  = "COUNTER"
	Reject   = "REJECT"
	Escalate = "ESCALATE"
)

// A Situation is a turn to decide.
type Situation struct {
	Offer map[string]any // the other side's terms; nil for none yet
	Time  float64        // how much of the negotiation is over, 0 to 1
	Last  bool           // nobody can answer a COUNTER any more
}

// A Decision is what to say.
type Decision struct {
	Act    string
	Terms  map[string]any // of a PROPOSE or COUNTER
	Reason string
	Code   string // of an ESCALATE: authority-limit or policy-ambiguous

	assessment assessment // of a turn about a match
}

// Decide decides a turn.
func (p *Policy) Decide(s Situation) Decision {
	target := p.target(s.Time)
	if s.Offer == nil {
		return Decision{Act: Propose, Terms: p.offer(nil, target), Reason: "this is what we are looking for"}
	}
	if why := p.unknown(s.Offer); why != "" {
		return Decision{Act: Escalate, Code: "policy-ambiguous", Reason: why}
	}
	u, beyond := p.Utility(s.Offer)
	counter := p.offer(s.Offer, target)
	ours, _ := p.Utility(counter)
	switch {
	case p.Acceptable(s.Offer) && (u >= target || u >= ours || s.Last):
		return Decision{Act: Accept, Reason: "the terms suit us"}
	case s.Last && beyond != "":
		return Decision{Act: Escalate, Code: "authority-limit", Reason: beyond + " is beyond the mandate, and this is the last turn"}
	case s.Last:
		return Decision{Act: Reject, Reason: "the terms do not suit us"}
	}
	return Decision{Act: Counter, Terms: counter, Reason: "these terms suit us better"}
}

// Acceptable reports whether the policy agrees to terms in the end, without a human.
func (p *Policy) Acceptable(terms map[string]any) bool { return p.worth(terms, p.Reservation) }

// worth reports whether terms are the policy's to decide, within the mandate, and worth so much.
func (p *Policy) worth(terms map[string]any, least float64) bool {
	for name := range p.Fixed {
		if _, has := terms[name]; !has {
			return false
		}
	}
	u, beyond := p.Utility(terms)
	return beyond == "" && p.unknown(terms) == "" && u >= least
}

// Allows reports whether a COUNTER or PROPOSE with these terms keeps to the policy at a time.
func (p *Policy) Allows(terms map[string]any, time float64) bool {
	return p.worth(terms, p.target(time)-1e-9)
}

// Utility is what terms are worth; beyond names a term that is beyond the mandate.
func (p *Policy) Utility(terms map[string]any) (u float64, beyond string) {
	var weights float64
	for _, name := range slices.Sorted(maps.Keys(p.Issues)) {
		issue := p.Issues[name]
		one, within, _ := issue.utility(terms[name])
		if !within && beyond == "" {
			beyond = name
		}
		u, weights = u+*issue.Weight*one, weights+*issue.Weight
	}
	return u / weights, beyond
}

// unknown says what in the terms is not the policy's to decide, "" for nothing.
func (p *Policy) unknown(terms map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		issue, known := p.Issues[name]
		fixed, is := p.Fixed[name]
		readable := false
		if known {
			_, _, readable = issue.utility(terms[name])
		}
		switch {
		case slices.Contains(p.Escalate, name):
			return fmt.Sprintf("a human decides about %q", name)
		case is && !reflect.DeepEqual(fixed, terms[name]):
			return fmt.Sprintf("%q is not what it has to be", name)
		case is || slices.Contains(p.Ignore, name):
		case !known:
			return fmt.Sprintf("the policy does not know %q", name)
		case !readable:
			return fmt.Sprintf("the value of %q cannot be read", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Issues)) {
		if _, has := terms[name]; !has {
			return fmt.Sprintf("the offer does not say %q", name)
		}
	}
	return ""
}

// offer makes terms that are worth a target: choices as the other side has them where that
// leaves enough, else our best, and all numbers on one level.
func (p *Policy) offer(theirs map[string]any, target float64) map[string]any {
	if terms, ok := p.with(theirs, target); ok {
		return terms
	}
	terms, _ := p.with(nil, target)
	return terms
}

// with makes an offer with the other side's choices, nil for our best ones. ok is false
// where they leave less than the target.
func (p *Policy) with(theirs map[string]any, target float64) (terms map[string]any, ok bool) {
	terms = maps.Clone(p.Fixed)
	if terms == nil {
		terms = map[string]any{}
	}
	var weights, numbers, chosen float64
	for name, issue := range p.Issues {
		weights += *issue.Weight
		if len(issue.Values) == 0 {
			numbers += *issue.Weight
			continue
		}
		choice, _ := theirs[name].(string)
		if _, in := issue.Values[choice]; !in {
			choice = issue.favourite()
		}
		terms[name] = choice
		chosen += *issue.Weight * issue.Values[choice]
	}
	level := 1.0
	if numbers > 0 {
		level = (target*weights - chosen) / numbers
	}
	for name, issue := range p.Issues {
		if len(issue.Values) == 0 {
			terms[name] = issue.value(level)
		}
	}
	u, beyond := p.Utility(terms)
	return terms, beyond == "" && u >= target-1e-9
}

// favourite is the choice that is worth most, the first by name of equals.
func (i Issue) favourite() (best string) {
	for _, name := range slices.Sorted(maps.Keys(i.Values)) {
		if best == "" || i.Values[name] > i.Values[best] {
			best = name
		}
	}
	return best
}
