package schemas

import (
	"errors"
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Bounds of a terms schema. CompileTerms refuses a schema that exceeds one of them,
// before the library compiles it where that takes time or memory. A schema also nests
// at most ijson.MaxDepth deep.
const (
	MaxTermsSchema  = 64 << 10 // bytes
	MaxSubschemas   = 1024     // objects and booleans; compiling takes time in their square
	MaxNames        = 4 << 10  // bytes of the names above a value: each subschema below repeats them
	MaxPatternBytes = 8 << 10  // of all regular expressions
	MaxPatternSteps = 4096     // the size of all regular expressions with their repetitions written out
	MaxExpanded     = 1024     // subschemas that apply to one value, with references and branches expanded
	MaxInPlace      = 64       // how deep references and branches nest at one value
)

// A complexityError says which bound a schema exceeds, and by how much.
type complexityError struct {
	what string
	n    int // math.MaxInt for more than can be counted
	most int
}

func (e *complexityError) Error() string {
	if e.n == math.MaxInt {
		return fmt.Sprintf("it has far more than %d %s", e.most, e.what)
	}
	return fmt.Sprintf("it has %d %s, and may have at most %d", e.n, e.what, e.most)
}

// TooComplex reports whether CompileTerms refused a schema for its complexity.
func TooComplex(err error) bool {
	var complexity *complexityError
	return errors.As(err, &complexity)
}

func within(n, most int, what string) error {
	if n > most {
		return &complexityError{what: what, n: n, most: most}
	}
	return nil
}

// A survey counts what makes a schema expensive to compile, in its decoded text.
type survey struct {
	subschemas   int // objects and booleans, an upper bound of the subschemas
	names        int // bytes of the longest path
	patternBytes int
	patternSteps int
}

// add counts a value, and names the bytes of the names above it.
func (s *survey) add(v any, names int) {
	s.names = max(s.names, names)
	switch v := v.(type) {
	case bool:
		s.subschemas++
	case []any:
		for _, item := range v {
			s.add(item, names)
		}
	case map[string]any:
		s.subschemas++
		if pattern, ok := v["pattern"].(string); ok {
			s.addPattern(pattern)
		}
		if patterns, ok := v["patternProperties"].(map[string]any); ok {
			for pattern := range patterns {
				s.addPattern(pattern)
			}
		}
		for name, item := range v {
			s.add(item, names+len(name))
		}
	}
}

// addPattern parses a pattern only while the bytes are within their bound, because
// parsing takes memory too.
func (s *survey) addPattern(pattern string) {
	if s.patternBytes += len(pattern); s.patternBytes <= MaxPatternBytes {
		s.patternSteps = plus(s.patternSteps, patternSteps(pattern))
	}
}

func (s *survey) check() error {
	return errors.Join(
		within(s.subschemas, MaxSubschemas, "objects and booleans"),
		within(s.names, MaxNames, "bytes of names above one value"),
		within(s.patternBytes, MaxPatternBytes, "bytes of patterns"),
		within(s.patternSteps, MaxPatternSteps, "steps in its patterns, with their repetitions written out"),
	)
}

// patternSteps estimates the instructions of a compiled pattern without compiling it.
// What is no regular expression has none.
func patternSteps(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return steps(re)
}

func steps(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n = plus(n, steps(sub))
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 64
	case syntax.OpRepeat:
		n = times(n, max(re.Min+1, re.Max))
	default:
	}
	return n
}

// isRegex is the format regex. It does not compile the expression: an offer may hold
// one that takes gigabytes.
func isRegex(s string) bool {
	if len(s) > MaxPatternBytes {
		return false
	}
	re, err := syntax.Parse(s, syntax.Perl)
	return err == nil && steps(re) <= MaxPatternSteps
}

// builtIn finds a reference to json-schema.org. The library has those documents
// built in, and their references are dynamic.
func builtIn(v any) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if ref := builtIn(item); ref != "" {
				return ref
			}
		}
	case map[string]any:
		for _, keyword := range []string{"$id", "$ref", "$dynamicRef", "$recursiveRef"} {
			if ref, ok := v[keyword].(string); ok && strings.Contains(ref, "json-schema.org") {
				return ref
			}
		}
		for _, item := range v {
			if ref := builtIn(item); ref != "" {
				return ref
			}
		}
	}
	return ""
}

var (
	errDynamic = errors.New("it uses $dynamicRef or $recursiveRef, and what these refer to is known only when terms are checked; use $ref")
	errEndless = errors.New("it refers to itself without end")
)

// expand measures what applies to one value at the node: how many subschemas, and how
// deep they nest. Loops are found here because the library misses some.
func (n *node) expand() error {
	switch {
	case n.expanding:
		return errEndless
	case n.expanded > 0:
		return nil
	}
	n.expanding = true
	n.expanded = 1
	for _, sub := range n.inPlace {
		if err := sub.node.expand(); err != nil {
			return err
		}
		n.expanded = plus(n.expanded, sub.node.expanded)
		n.depth = max(n.depth, sub.node.depth+1)
	}
	n.expanding = false
	return errors.Join(
		within(n.expanded, MaxExpanded, "subschemas for one value, with its references and branches expanded"),
		within(n.depth, MaxInPlace, "references and branches inside each other for one value"),
	)
}

// isDynamic reports whether what a subschema refers to depends on how it was reached.
func isDynamic(s *jsonschema.Schema) bool { return s.DynamicRef != nil || s.RecursiveRef != nil }

// plus and times are for counts that attackers choose: they stay at the largest int.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}
