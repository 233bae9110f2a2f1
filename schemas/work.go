package schemas

import (
	"errors"
	"regexp/syntax"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// maxWork limits one validation against a terms schema, in visited subschemas, so
// that nobody can register a schema whose work doubles with each level of the
// terms. That much work takes well under a second.
const maxWork = 1 << 20

var errWork = errors.New("too much work")

// work counts down during one validation. It is an extension keyword of the
// library that applies to every subschema.
type work struct{ left int }

// Compile weighs a subschema by its children, because the library visits some of
// them without calling extensions.
func (w *work) Compile(_ jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	s := &weighed{work: w, weight: 1}
	for keyword, v := range m {
		each := 1
		if slices.Contains(branching, keyword) {
			each = perBranch
		}
		switch v := v.(type) {
		case []any:
			s.weight += each * len(v)
		case map[string]any:
			s.weight += each * len(v)
		case string:
			s.weight += each - 1
		}
	}
	if pattern, ok := m["pattern"].(string); ok {
		s.perChar = states(pattern)
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for pattern := range patterns {
			s.perNameChar += states(pattern)
		}
	}
	return s, nil
}

// branching are the keywords that apply further subschemas to the same value.
// They cost more, because the library keeps the errors of every branch.
var branching = []string{
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
	"dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
}

const perBranch = 8

// states is the size of a regexp's program, an upper bound of its work per character.
func states(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

type weighed struct {
	work                         *work
	weight, perChar, perNameChar int
}

// charsPerUnit is how many regexp steps cost as much as one subschema.
const charsPerUnit = 64

// Validate accepts every value, and panics with errWork to end a validation that
// takes too much work.
func (s *weighed) Validate(_ jsonschema.ValidationContext, v any) error {
	cost := s.weight
	switch v := v.(type) {
	case string:
		cost += len(v) * s.perChar / charsPerUnit
	case map[string]any:
		if s.perNameChar > 0 {
			for name := range v {
				cost += (len(name) + 1) * s.perNameChar / charsPerUnit
			}
		}
	}
	if s.work.left -= cost; s.work.left < 0 {
		panic(errWork)
	}
	return nil
}
