package modes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// parameters are an invitation's policy while a mode reads it, one parameter
// at a time. What no one reads is unknown to the mode.
type parameters struct {
	given  map[string]jsontext.Value
	read   []string
	faults []session.Fault
}

func readPolicy(policy jsontext.Value) *parameters {
	p := &parameters{given: map[string]jsontext.Value{}}
	if len(policy) > 0 && json.Unmarshal(policy, &p.given) != nil {
		p.fault("", "type", "policy is an object of the mode's parameters")
	}
	return p
}

// judged refuses ill-typed values (schema_invalid), then unknown parameters
// (mode_violation).
func (p *parameters) judged() error {
	if len(p.faults) > 0 {
		session.SortFaults(p.faults)
		return session.RefuseSchema(p.faults...)
	}
	var unknown []string
	for name := range p.given {
		if !slices.Contains(p.read, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return session.Violation("policy", "the mode has no parameter %s; it has %s, and as every mode %s", strings.Join(unknown, ", "), strings.Join(p.read, ", "), session.EveryMode)
}

func (p *parameters) fault(path, rule, format string, args ...any) {
	p.faults = append(p.faults, session.Fault{Path: "/terms/policy" + path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (p *parameters) value(name string) (jsontext.Value, bool) {
	p.read = append(p.read, name)
	v, given := p.given[name]
	return v, given
}

// biggest is the last whole number that survives a double.
const biggest = 1<<53 - 1

// number reads a whole number; absent is 0.
func (p *parameters) number(name string, atLeast int64) int64 {
	raw, given := p.value(name)
	if !given {
		return 0
	}
	var f float64
	switch ok := raw.Kind() == '0' && json.Unmarshal(raw, &f) == nil; {
	case !ok:
		p.fault("/"+name, "type", "policy.%s must be a whole number", name)
	case f < float64(atLeast):
		p.fault("/"+name, "minimum", "policy.%s must be at least %d", name, atLeast)
	case f > biggest:
		p.fault("/"+name, "maximum", "policy.%s must be at most %d", name, int64(biggest))
	case f != float64(int64(f)):
		p.fault("/"+name, "type", "policy.%s must be a whole number", name)
	default:
		return int64(f)
	}
	return 0
}

// word reads one of some words; absent is the first of them.
func (p *parameters) word(name string, words ...string) string {
	raw, given := p.value(name)
	if !given {
		return words[0]
	}
	var word string
	if raw.Kind() != '"' || json.Unmarshal(raw, &word) != nil {
		p.fault("/"+name, "type", "policy.%s must be a string", name)
	} else if !slices.Contains(words, word) {
		p.fault("/"+name, "enum", "policy.%s must be one of %s", name, strings.Join(words, ", "))
	}
	return word
}

// text reads a string; absent is "".
func (p *parameters) text(name string) (text string) {
	raw, given := p.value(name)
	if given && (raw.Kind() != '"' || json.Unmarshal(raw, &text) != nil) {
		p.fault("/"+name, "type", "policy.%s must be a string", name)
	}
	return text
}

// texts reads a list of strings; absent is none.
func (p *parameters) texts(name string) (texts []string) {
	raw, given := p.value(name)
	if given && (raw.Kind() != '[' || json.Unmarshal(raw, &texts) != nil) {
		p.fault("/"+name, "type", "policy.%s must be a list of strings", name)
	}
	return texts
}

// publish reads what a leaf of the public log shows of an agreement, for whom it concerns
// later: agreement.PublishOf.
func (p *parameters) publish() {
	raw, given := p.value("publish")
	if _, ok := agreement.ParsePublish(raw); given && !ok {
		p.fault("/publish", "type", `policy.publish must be "hash", "terms" or a list of terms`)
	}
}

// truth reads a boolean.
func (p *parameters) truth(name string, byDefault bool) bool {
	raw, given := p.value(name)
	if !given {
		return byDefault
	}
	if k := raw.Kind(); k != 't' && k != 'f' {
		p.fault("/"+name, "type", "policy.%s must be true or false", name)
	}
	return raw.Kind() == 't'
}

// principals reads a list of principals, who all have to be among some.
func (p *parameters) principals(name string, among map[asp.Agent]bool) map[asp.Agent]bool {
	raw, given := p.value(name)
	if !given {
		return nil
	}
	var list []jsontext.Value
	if raw.Kind() != '[' || json.Unmarshal(raw, &list) != nil {
		p.fault("/"+name, "type", "policy.%s must be a list of principals", name)
	}
	found := make(map[asp.Agent]bool, len(list))
	for i, item := range list {
		var a asp.Agent
		path := fmt.Sprintf("/%s/%d", name, i)
		switch {
		case item.Kind() != '"' || json.Unmarshal(item, &a) != nil:
			p.fault(path, "type", "policy.%s[%d] must be the URI of a principal", name, i)
		case !among[a]:
			p.fault(path, "participant", "policy.%s[%d] takes no part in the session", name, i)
		}
		found[a] = true
	}
	return found
}
