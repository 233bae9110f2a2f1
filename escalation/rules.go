package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Rules are who decides what, as an operator configures it. The zero Rules have
// none: then everybody decides who may, and one is enough (PROTOCOL.md §7).
// Check them before they are used.
type Rules struct {
	Calendars     map[string]*Calendar                         `yaml:"calendars"`
	Organisations map[performatives.Organisation]*Organisation `yaml:"organisations"`
}

// An Organisation is what one organisation has configured.
type Organisation struct {
	Groups   map[string][]performatives.Agent `yaml:"groups"`
	Calendar string                           `yaml:"calendar"` // of when answers are due; "" is around the clock
	Due      Times                            `yaml:"due"`      // by urgency, where no rule says otherwise
	Remind   *Duration                        `yaml:"remind"`   // before a level is due; default: a quarter of its time; 0s is never
	Amounts  []string                         `yaml:"amounts"`  // dotted paths at which offers name their amount
	Rules    []*Rule                          `yaml:"rules"`    // the first that matches counts
}

// A Rule says who decides what it matches.
type Rule struct {
	Name   string `yaml:"name"`
	Match  Match  `yaml:"match"`
	Asked  `yaml:",inline"`
	Chain  []Asked   `yaml:"chain"` // who is asked next when the time is over, and so on
	Remind *Duration `yaml:"remind"`
}

// Asked is one level: who, how many, within what time from the ESCALATE.
type Asked struct {
	Level     string   `yaml:"level"`     // its name
	Approvers []string `yaml:"approvers"` // groups, or human://…; none is everybody who may decide
	Quorum    int      `yaml:"quorum"`    // default 1
	Due       Times    `yaml:"due"`
}

// A Match is what a rule is for. What is left out matches everything.
type Match struct {
	Urgency    []Urgency `yaml:"urgency"`
	Reason     []string  `yaml:"reason"`
	Capability []string  `yaml:"capability"` // of the principal for whom is asked: one of them
	Amount     *Range    `yaml:"amount"`
}

// A Range of amounts, from min on and up to max, that included.
type Range struct {
	Min      float64  `yaml:"min"`
	Max      *float64 `yaml:"max"`
	Currency string   `yaml:"currency"` // "" is any
	// Unseen matches too when no amount can be seen in what is at stake.
	Unseen bool `yaml:"unseen"`
}

// Times are how long an answer may take: by urgency, or the same for all.
type Times struct {
	All       Duration
	ByUrgency map[Urgency]Duration
}

// A Duration is written as 90m or 24h.
type Duration time.Duration

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("%s is below zero", text)
	}
	*d = Duration(v)
	return err
}

// UnmarshalYAML reads one time for all, or one by urgency.
func (t *Times) UnmarshalYAML(read func(any) error) error {
	if read(&t.All) == nil {
		return nil
	}
	if err := read(&t.ByUrgency); err != nil {
		return err
	}
	for u := range t.ByUrgency {
		if !slices.Contains(urgencies, u) {
			return fmt.Errorf("there is no urgency %q", u)
		}
	}
	return nil
}

var urgencies = []Urgency{Low, Medium, High, Critical}

// of is the time for an urgency, 0 where none was said.
func (t Times) of(u Urgency) time.Duration {
	if d, ok := t.ByUrgency[u]; ok {
		return time.Duration(d)
	}
	return time.Duration(t.All)
}

// Check finds what is wrong with rules, and makes them ready for use.
func (r *Rules) Check() error {
	var faults []error
	fault := func(where string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", where, err))
		}
	}
	for name, c := range r.Calendars {
		if c == nil {
			c = new(Calendar)
			r.Calendars[name] = c
		}
		fault("calendars: "+name, c.read())
	}
	for host, o := range r.Organisations {
		if o == nil {
			delete(r.Organisations, host)
			continue
		}
		where := "organisations: " + string(host)
		if r.Calendars[o.Calendar] == nil && o.Calendar != "" {
			fault(where, fmt.Errorf("there is no calendar %q", o.Calendar))
		}
		for name, members := range o.Groups {
			for _, a := range members {
				fault(where+": groups: "+name, isHumanOf(a, host))
			}
			if !groupName(name) {
				fault(where+": groups", fmt.Errorf("%q: a group's name is letters, digits and dashes", name))
			}
		}
		for n, rule := range o.Rules {
			where := fmt.Sprintf("%s: rules: %d", where, n+1)
			if rule == nil {
				fault(where, errors.New("is empty"))
				continue
			}
			if rule.Name != "" {
				where += " (" + rule.Name + ")"
			}
			fault(where, rule.check(o, host))
		}
	}
	return errors.Join(faults...)
}

func groupName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func isHumanOf(a performatives.Agent, host performatives.Organisation) error {
	if _, err := performatives.ParseAgent(string(a)); err != nil {
		return err
	}
	if !a.IsHuman() || a.Organisation() != host {
		return fmt.Errorf("%s is no human of %s", a, host)
	}
	return nil
}

func (r *Rule) check(o *Organisation, host performatives.Organisation) error {
	for _, u := range r.Match.Urgency {
		if !slices.Contains(urgencies, u) {
			return fmt.Errorf("match: urgency: there is no %q", u)
		}
	}
	for n, level := range append([]Asked{r.Asked}, r.Chain...) {
		where := "chain: "
		if n == 0 {
			where = ""
		}
		who, err := o.approvers(level.Approvers, host)
		switch {
		case err != nil:
			return fmt.Errorf("%sapprovers: %w", where, err)
		case level.Quorum < 0, len(who) > 0 && level.Quorum > len(who):
			return fmt.Errorf("%squorum: %d of %d approvers cannot be", where, level.Quorum, len(who))
		}
	}
	return nil
}

// approvers are the humans that names of groups and humans stand for.
func (o *Organisation) approvers(names []string, host performatives.Organisation) ([]performatives.Agent, error) {
	var who []performatives.Agent
	for _, name := range names {
		members, isGroup := o.Groups[name]
		if !isGroup {
			a := performatives.Agent(name)
			if !a.IsHuman() {
				return nil, fmt.Errorf("there is no group %q", name)
			}
			if err := isHumanOf(a, host); err != nil {
				return nil, err
			}
			members = []performatives.Agent{a}
		}
		for _, a := range members {
			if !slices.Contains(who, a) {
				who = append(who, a)
			}
		}
	}
	return who, nil
}
