package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	_ "time/tzdata" // calendars name time zones, which the machine may lack

	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/strictyaml"
)

// ReadRules reads the escalation rules from a YAML or JSON file and checks them.
// An unknown field is an error, so that a misspelt rule is not ignored. Errors
// name the line where the file has one.
func ReadRules(path string) (*escalation.Rules, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rules := new(escalation.Rules)
	if err := strictyaml.Decode(data, rules); err != nil {
		return nil, fmt.Errorf("%s: %w", path, cmp.Or(wrongTime(&document), err))
	}
	if err := rules.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, withLines(err, &document))
	}
	return rules, nil
}

// warnOfApprovers warns of humans whom rules ask and who cannot decide: a level that too few can approve is passed over.
func (b *Broker) warnOfApprovers(rules *escalation.Rules) {
	if rules == nil {
		return
	}
	for _, org := range slices.Sorted(maps.Keys(rules.Organisations)) {
		for _, human := range rules.Humans(org) {
			if member, _ := b.Parts.Registry.Member(human); !escalation.MayDecide(member, org) {
				b.Options.Log.Warn("the rules ask somebody who is not registered, or may not decide", zap.String("human", string(human)))
			}
		}
	}
}

// wrongTime is the first due or remind of the file that is no duration, with its line: the
// decoder does not tell the line of a text that its type refuses.
func wrongTime(node *yaml.Node) error {
	for n, child := range node.Content {
		key := ""
		if node.Kind == yaml.MappingNode && n%2 == 1 {
			key = node.Content[n-1].Value
		}
		switch key {
		case "groups", "calendars": // their keys are names
			continue
		case "due", "remind":
			var into any = new(escalation.Times)
			if child.Kind == yaml.ScalarNode {
				into = new(escalation.Duration)
			}
			err := child.Decode(into)
			if _, ok := errors.AsType[*yaml.TypeError](err); ok {
				err = errors.New("want a duration such as 4h, or one for each urgency")
			}
			if err != nil {
				return fmt.Errorf("line %d: %s: %w", child.Line, key, err)
			}
		}
		if err := wrongTime(child); err != nil {
			return err
		}
	}
	return nil
}

// withLines adds their lines to the faults of the rules.
func withLines(err error, document *yaml.Node) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var faults []error
	for _, err := range joined.Unwrap() {
		if fault, ok := errors.AsType[*escalation.Fault](err); ok {
			err = fmt.Errorf("line %d: %w", lineOf(document, fault.Path), err)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// lineOf returns the line of the deepest node on a path.
func lineOf(node *yaml.Node, path []string) int {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		return lineOf(node.Content[0], path)
	}
	line := max(node.Line, 1)
	if len(path) == 0 {
		return line
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == path[0] {
				return max(node.Content[i].Line, lineOf(node.Content[i+1], path[1:]))
			}
		}
	case yaml.SequenceNode:
		if n, err := strconv.Atoi(path[0]); err == nil && n < len(node.Content) {
			return lineOf(node.Content[n], path[1:])
		}
	case yaml.AliasNode:
		return lineOf(node.Alias, path)
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	return line
}
