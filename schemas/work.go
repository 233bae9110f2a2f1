package schemas

import (
	"errors"
	"regexp/syntax"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// maxWork bounds what one validation against a terms schema may cost, in
// subschemas looked at, so that nobody can register a schema that doubles its
// work with each level of the terms. It takes well under a second.
const maxWork = 1 << 20

var errWork = errors.New("too much work")

// work counts down during one validation. It enters the library as a keyword
// that every subschema has.
type work struct{ left int }

// Compile weighs a subschema by its children, which may be looked at without
// being counted themselves.
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

// branching are the keywords that look at the same value again. They cost more:
// what fails below them is remembered until all of it has failed.
var branching = []string{
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
	"dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
}

const perBranch = 8

// states is the size of a regexp's program, which bounds its work per character.
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

// charsPerUnit is how many steps of a regexp take as long as one subschema.
const charsPerUnit = 64

// Validate refuses nothing; it panics with errWork, which ends the validation.
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
