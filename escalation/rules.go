package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-asp/parley/performatives"
)

// Rules configure who decides what. Without rules, any one human with the
// authority decides (PROTOCOL.md §7). Call Check before use.
type Rules struct {
	Calendars     map[string]*Calendar                         `yaml:"calendars"`
	Organisations map[performatives.Organisation]*Organisation `yaml:"organisations"`
}

// An Organisation is the configuration of one organisation.
type Organisation struct {
	Groups   map[string][]performatives.Agent `yaml:"groups"`
	Calendar string                           `yaml:"calendar"` // for due times; "" is around the clock
	Due      Times                            `yaml:"due"`      // for rules without their own
	Remind   *Duration                        `yaml:"remind"`   // before a level is due; default: a quarter of its time; 0s is never
	// RemindDue is how long before something is due, by what was agreed, people are told; then they are told of
	// what is overdue, too. 0s, the default, tells nobody.
	RemindDue *Duration `yaml:"remindDue"`
	Amounts   []string  `yaml:"amounts"` // dotted paths of amounts in offers
	// NonMonetary is "allow" or "two": how many humans with a ceiling approve terms
	// that name no amount. "" leaves that to humans without a ceiling.
	NonMonetary string  `yaml:"nonMonetary"`
	Deny        Deny    `yaml:"deny"`
	Rules       []*Rule `yaml:"rules"` // the first match applies
	// Roles are who may read all deals of the organisation, or how the brokers do: groups, or human://… by role.
	Roles map[string][]string `yaml:"roles"`
}

// The roles of people: an owner and an auditor read all deals of their organisation, an operator
// reads how the brokers do, and no deals.
const (
	RoleOwner    = "owner"
	RoleAuditor  = "auditor"
	RoleOperator = "operator"
)

// The values of NonMonetary.
const (
	NonMonetaryAllow = "allow"
	NonMonetaryTwo   = "two"
)

// A Rule determines who decides the escalations that it matches.
type Rule struct {
	Name   string `yaml:"name"`
	Match  Match  `yaml:"match"`
	Asked  `yaml:",inline"`
	Chain  []Asked   `yaml:"chain"` // further levels, each asked when the previous one has timed out
	Remind *Duration `yaml:"remind"`
}

// Asked is one level: who is asked, how many must approve, and how long after the
// ESCALATE they are due.
type Asked struct {
	Level     string   `yaml:"level"`     // its name
	Approvers []string `yaml:"approvers"` // groups, or human://…; none is everybody with the authority
	Quorum    int      `yaml:"quorum"`    // default 1
	Due       Times    `yaml:"due"`
}

// A Match selects escalations. A missing field matches everything.
type Match struct {
	Urgency    []Urgency `yaml:"urgency"`
	Reason     []string  `yaml:"reason"`
	Capability []string  `yaml:"capability"` // the principal has one of them
	Amount     *Range    `yaml:"amount"`
}

// A Range of amounts from min to max, both included.
type Range struct {
	Min      float64  `yaml:"min"`
	Max      *float64 `yaml:"max"`
	Currency string   `yaml:"currency"` // "" is any
	// Unseen also matches if no amount is found in what is at stake.
	Unseen bool `yaml:"unseen"`
}

// Times are how long an answer may take, by urgency or for all alike.
type Times struct {
	All       Duration
	ByUrgency map[Urgency]Duration
}

// A Duration is written as 90m or 24h.
type Duration time.Duration

// UnmarshalText reads a duration that is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("%s is below zero", text)
	}
	*d = Duration(v)
	return err
}

// UnmarshalYAML reads one duration, or one for each urgency.
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

var (
	urgencies = []Urgency{Low, Medium, High, Critical}
	reasons   = []string{"authority-limit", "confidence-low", "policy-ambiguous", "adversarial-detected", performatives.Confirmation, performatives.Delivered}
)

// of returns the time for an urgency, 0 if none is configured.
func (t Times) of(u Urgency) time.Duration {
	if d, ok := t.ByUrgency[u]; ok {
		return time.Duration(d)
	}
	return time.Duration(t.All)
}

// A Fault is an error in the rules. Path leads to it from the root of the file:
// names, and indexes from 0.
type Fault struct {
	Path []string
	Name string // of the rule, if it has one
	Err  error
}

func (f *Fault) Error() string {
	path := slices.Clone(f.Path)
	for i, step := range path {
		if n, err := strconv.Atoi(step); err == nil {
			path[i] = strconv.Itoa(n + 1)
		}
		if i == 3 && f.Name != "" {
			path[i] += " (" + f.Name + ")"
		}
	}
	return strings.Join(path, ": ") + ": " + f.Err.Error()
}

// Unwrap returns the error without the path.
func (f *Fault) Unwrap() error { return f.Err }

// Check returns the faults of the rules, each a [Fault], and prepares them for use.
func (r *Rules) Check() error {
	var faults []error
	fault := func(err error, path ...string) {
		if err != nil {
			faults = append(faults, &Fault{Path: path, Err: err})
		}
	}
	for name, c := range r.Calendars {
		if c == nil {
			c = new(Calendar)
			r.Calendars[name] = c
		}
		fault(c.read(), "calendars", name)
	}
	for host, o := range r.Organisations {
		fault(host.Check(), "organisations", string(host))
		if o == nil {
			delete(r.Organisations, host)
			continue
		}
		if r.Calendars[o.Calendar] == nil && o.Calendar != "" {
			fault(fmt.Errorf("there is no calendar %q", o.Calendar), "organisations", string(host), "calendar")
		}
		if n := o.NonMonetary; n != "" && n != NonMonetaryAllow && n != NonMonetaryTwo {
			fault(fmt.Errorf("%q is neither %s nor %s", n, NonMonetaryAllow, NonMonetaryTwo), "organisations", string(host), "nonMonetary")
		}
		fault(o.Deny.check(), "organisations", string(host), "deny")
		for name, members := range o.Groups {
			for _, a := range members {
				fault(isHumanOf(a, host), "organisations", string(host), "groups", name)
			}
			if !groupName(name) {
				fault(errors.New("the name of a group has only letters, digits, dashes and underscores"), "organisations", string(host), "groups", name)
			}
		}
		for role, who := range o.Roles {
			_, err := o.approvers(who, host)
			if role != RoleOwner && role != RoleAuditor && role != RoleOperator {
				err = fmt.Errorf("there is no role %q: roles are %s, %s and %s", role, RoleOwner, RoleAuditor, RoleOperator)
			}
			fault(err, "organisations", string(host), "roles", role)
		}
		for n, rule := range o.Rules {
			path := []string{"organisations", string(host), "rules", strconv.Itoa(n)}
			if rule == nil {
				fault(errors.New("the rule is empty"), path...)
			} else if f := rule.check(o, host); f != nil {
				f.Path, f.Name = append(path, f.Path...), rule.Name
				faults = append(faults, f)
			}
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
		return fmt.Errorf("%s is not a human of %s", a, host)
	}
	return nil
}

// check returns the first fault of a rule. Its path begins at the rule.
func (r *Rule) check(o *Organisation, host performatives.Organisation) *Fault {
	for _, u := range r.Match.Urgency {
		if !slices.Contains(urgencies, u) {
			return &Fault{Path: []string{"match", "urgency"}, Err: fmt.Errorf("there is no %q", u)}
		}
	}
	for _, reason := range r.Match.Reason {
		if !slices.Contains(reasons, reason) {
			return &Fault{Path: []string{"match", "reason"}, Err: fmt.Errorf("there is no %q; there is %s", reason, strings.Join(reasons, ", "))}
		}
	}
	if a := r.Match.Amount; a != nil && a.Max != nil && *a.Max < a.Min {
		return &Fault{Path: []string{"match", "amount"}, Err: fmt.Errorf("max %g is below min %g", *a.Max, a.Min)}
	}
	for n, level := range append([]Asked{r.Asked}, r.Chain...) {
		var path []string
		if n > 0 {
			path = []string{"chain", strconv.Itoa(n - 1)}
		}
		who, err := o.approvers(level.Approvers, host)
		switch {
		case err != nil:
			return &Fault{Path: append(path, "approvers"), Err: err}
		case level.Quorum < 0, len(who) > 0 && level.Quorum > len(who):
			return &Fault{Path: append(path, "quorum"), Err: fmt.Errorf("%d of %d approvers is impossible", level.Quorum, len(who))}
		}
	}
	return nil
}

// approvers resolves names of groups and humans to humans.
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

// A Deny is what an organisation wants of denials.
type Deny struct {
	Required bool     `yaml:"required"` // a denial must give a reason
	Reasons  []string `yaml:"reasons"`  // offered to humans who deny; they may write another
}

// The bounds of reasons in the rules.
const (
	maxReasons     = 20
	maxReasonChars = 200
)

func (d *Deny) check() error {
	if len(d.Reasons) > maxReasons {
		return fmt.Errorf("at most %d reasons", maxReasons)
	}
	for n, reason := range d.Reasons {
		switch {
		case strings.TrimSpace(reason) == "":
			return errors.New("a reason is empty")
		case utf8.RuneCountInString(reason) > maxReasonChars:
			return fmt.Errorf("a reason has at most %d characters", maxReasonChars)
		case slices.Contains(d.Reasons[:n], reason):
			return fmt.Errorf("%q is there twice", reason)
		}
	}
	return nil
}
