// Package negotiator decides turns by a policy: how much each term is worth, where to begin,
// how to concede, where to stop, and what a human has to decide.
//
//	p, err := negotiator.Parse(yaml)
//	d := p.Decide(negotiator.Situation{Offer: terms, Time: 0.5})
//	// d.Act is ACCEPT, COUNTER, REJECT or ESCALATE, d.Terms the terms of a COUNTER
//
// The utility of an offer is 0 to 1: the weighted mean of that of its terms. The target
// begins at the aspiration and ends at the reservation. curve shapes it: below 1 it stays
// high until late (Boulware), 1 is linear, above 1 it concedes early.
//
// These hold: nothing below the reservation, or beyond the worst value of a term, is
// accepted or offered; what the policy does not know is a human's to decide.
package negotiator

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/strictyaml"
)

// A Policy is a mandate.
type Policy struct {
	Subject     string           `yaml:"subject"`     // of the first offer
	Type        string           `yaml:"type"`        // of the first offer; by default service-agreement
	Issues      map[string]Issue `yaml:"issues"`      // by top-level term
	Fixed       map[string]any   `yaml:"fixed"`       // terms that every offer has as they are
	Ignore      []string         `yaml:"ignore"`      // terms that do not matter
	Escalate    []string         `yaml:"escalate"`    // terms that a human decides
	Aspiration  float64          `yaml:"aspiration"`  // utility of the first offer; by default 1
	Reservation float64          `yaml:"reservation"` // the lowest utility to agree to
	Curve       float64          `yaml:"curve"`       // by default 1
	Rounds      int              `yaml:"rounds"`      // offers to make where the mode has no cap; by default 5
	Publish     bool             `yaml:"publish"`     // agrees that the public log shows terms, where that is asked for
	Match       *Match           `yaml:"match"`       // judges offers without numbers by their assessments; by default they are as any others
}

// An Issue is what one term is worth: a number between best and worst, or a choice.
type Issue struct {
	Weight *float64           `yaml:"weight"` // against other issues; by default 1
	Best   *float64           `yaml:"best"`   // worth 1
	Worst  *float64           `yaml:"worst"`  // worth 0; beyond it there is no mandate
	Step   float64            `yaml:"step"`   // offers are multiples of it
	Values map[string]float64 `yaml:"values"` // of a choice; another value is beyond the mandate
}

var isType = regexp.MustCompile(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`) // of a PROPOSE

// Parse reads a policy and refuses one that does not make sense.
func Parse(text []byte) (*Policy, error) {
	p := &Policy{Aspiration: 1, Curve: 1, Rounds: 5, Type: "service-agreement", Subject: "an offer"}
	if err := strictyaml.Decode(text, p, "fixed"); err != nil {
		return nil, err
	}
	switch {
	case len(p.Issues) == 0 && p.Match == nil:
		return nil, errors.New("issues: there are none, and no match")
	case p.Match != nil && !(p.Match.Reject >= 0 && p.Match.Reject <= p.Match.Accept && p.Match.Accept <= 100):
		return nil, errors.New("match: want 0 <= reject <= accept <= 100")
	case !(p.Reservation >= 0 && p.Reservation <= p.Aspiration && p.Aspiration <= 1):
		return nil, errors.New("want 0 <= reservation <= aspiration <= 1")
	case !(p.Curve > 0 && p.Curve <= 100):
		return nil, errors.New("curve: is above 0 and at most 100")
	case p.Rounds < 1 || p.Rounds > 1000:
		return nil, errors.New("rounds: is 1 to 1000")
	case !isType.MatchString(p.Type) || p.Subject == "":
		return nil, errors.New("type: is words with dots, dashes or underscores between them, and subject is not empty")
	}
	fixed, err := json.Marshal(p.Fixed)
	if err == nil {
		p.Fixed = nil
		err = json.Unmarshal(fixed, &p.Fixed) // as offers have it
	}
	if err != nil {
		return nil, fmt.Errorf("fixed: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Issues)) {
		if _, is := p.Fixed[name]; is {
			return nil, fmt.Errorf("%s: is among issues and fixed: want one of them", name)
		}
		issue := p.Issues[name]
		if issue.Weight == nil {
			issue.Weight = new(1.0)
		}
		if err := issue.check(); err != nil {
			return nil, fmt.Errorf("issues: %s: %w", name, err)
		}
		p.Issues[name] = issue
	}
	return p, nil
}

func (i Issue) check() error {
	number := i.Best != nil && i.Worst != nil
	switch {
	case !(*i.Weight > 0) || math.IsInf(*i.Weight, 0):
		return errors.New("weight: is above 0")
	case number == (len(i.Values) > 0) || (i.Best == nil) != (i.Worst == nil):
		return errors.New("want either best and worst, or values")
	case number && (*i.Best == *i.Worst || math.IsInf(*i.Best-*i.Worst, 0) || math.IsNaN(*i.Best-*i.Worst)):
		return errors.New("best and worst are different numbers")
	case !(i.Step >= 0) || math.IsInf(i.Step, 0):
		return errors.New("step: is not below 0")
	}
	for name, u := range i.Values {
		if !(u >= 0 && u <= 1) {
			return fmt.Errorf("values: %s is 0 to 1", name)
		}
	}
	return nil
}

// target is the utility to ask for at a time from 0 to 1.
func (p *Policy) target(time float64) float64 {
	time = min(max(time, 0), 1)
	return p.Reservation + (p.Aspiration-p.Reservation)*(1-math.Pow(time, 1/p.Curve))
}

// utility is what a value of the issue is worth; known is false beyond the mandate, and
// readable where it is not of the issue's kind.
func (i Issue) utility(value any) (u float64, within, readable bool) {
	if len(i.Values) > 0 {
		name, is := value.(string)
		u, within = i.Values[name]
		return u, within, is
	}
	number, is := value.(float64)
	if !is {
		return 0, false, false
	}
	u = (number - *i.Worst) / (*i.Best - *i.Worst)
	return min(u, 1), u >= 0, true
}

// value is the number that is worth so much, rounded to the step in our favour.
func (i Issue) value(u float64) float64 {
	v := *i.Worst + (*i.Best-*i.Worst)*min(max(u, 0), 1)
	if i.Step <= 0 {
		return math.Round(v*1e6) / 1e6
	}
	if *i.Best > *i.Worst {
		return min(math.Ceil(v/i.Step-1e-9)*i.Step, max(*i.Best, *i.Worst))
	}
	return max(math.Floor(v/i.Step+1e-9)*i.Step, min(*i.Best, *i.Worst))
}
