package schemas

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A node is one compiled subschema with what a visit of it costs. The nodes of a
// schema are a graph, in which references are edges.
type node struct {
	types []string
	never bool // a boolean schema: no visit goes further

	cost      int // of each visit, beside what the value adds
	perChar   int // steps of the pattern, for each byte of a string
	perNumber int // of each number
	perName   int // steps of the patterns of names, for each byte of a name
	unique    bool
	location  int // bytes of its place in the schema, which every error repeats
	composite int // values in its enum or const that are objects or lists, with all in them

	inPlace    []edge           // apply to the same value
	properties map[string]*node // to the member of this name
	members    []*node          // to every other member, at most
	names      []*node          // to the name of every member
	prefix     []*node          // to the item of this index
	items      []*node          // to every other item, at most

	expanding       bool
	expanded, depth int
}

// An edge leads to a subschema that applies to the same value.
type edge struct {
	node *node
	path int // bytes of the keyword
}

// A grapher makes the nodes of compiled subschemas, each once.
type grapher struct {
	nodes    map[*jsonschema.Schema]*node
	patterns map[string]*regexp.Regexp // of patternProperties
	dynamic  bool
}

// graph makes the graph of a compiled schema, and refuses one that expands too far.
func (d *document) graph() (root *node, err error) {
	g := grapher{nodes: map[*jsonschema.Schema]*node{}, patterns: map[string]*regexp.Regexp{}}
	root = g.node(d.schema)
	if g.dynamic {
		return nil, errDynamic
	}
	for _, n := range g.nodes {
		if err := n.expand(); err != nil {
			return nil, err
		}
	}
	d.patterns = g.patterns
	return root, nil
}

func (g *grapher) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	if n := g.nodes[s]; n != nil {
		return n
	}
	n := &node{types: s.Types, never: s.Always != nil, location: len(s.Location), properties: map[string]*node{}}
	g.nodes[s] = n
	g.dynamic = g.dynamic || isDynamic(s)
	s.ContentSchema = nil // it would check what a string holds: another document, of any size
	g.costs(n, s)
	g.connect(n, s)
	return n
}

// connect follows every keyword that applies a subschema. Where the value decides
// whether it applies, it is taken to apply.
func (g *grapher) connect(n *node, s *jsonschema.Schema) {
	inPlace := func(keyword string, subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				n.inPlace = append(n.inPlace, edge{g.node(sub), len(keyword) + len("/1000/")})
			}
		}
	}
	inPlace("$ref", s.Ref, s.Not, s.If, s.Then, s.Else)
	inPlace("allOf", slices.Concat(s.AllOf, s.AnyOf, s.OneOf)...)
	for name, sub := range s.DependentSchemas {
		inPlace("dependentSchemas"+name, sub)
	}
	for name, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			inPlace("dependencies"+name, sub)
		}
	}
	to := func(list *[]*node, sub any) {
		if sub, ok := sub.(*jsonschema.Schema); ok && sub != nil {
			*list = append(*list, g.node(sub))
		}
	}
	for name, sub := range s.Properties {
		n.properties[name] = g.node(sub)
	}
	for _, sub := range s.PatternProperties {
		to(&n.members, sub)
	}
	to(&n.members, s.AdditionalProperties)
	to(&n.members, s.UnevaluatedProperties)
	to(&n.names, s.PropertyNames)
	prefix, _ := s.Items.([]*jsonschema.Schema)
	for _, sub := range slices.Concat(prefix, s.PrefixItems) {
		to(&n.prefix, sub)
	}
	for _, sub := range []any{s.Items, s.Items2020, s.AdditionalItems, s.Contains, s.UnevaluatedItems} {
		to(&n.items, sub)
	}
}

// bytesPerUnit is how much text costs as much as one visit.
const bytesPerUnit = 256

// costs estimates a visit's own work. Everything that an error repeats counts with its
// length, since every visit may be an error.
func (g *grapher) costs(n *node, s *jsonschema.Schema) {
	text := n.location
	for _, v := range slices.Concat(s.Enum, s.Constant) {
		data, _ := json.Marshal(v) //nolint:errchkjson // decoded from JSON
		text += len(data)
		switch v.(type) {
		case json.Number:
			n.perNumber++
		case map[string]any, []any:
			n.composite += values(v)
		}
	}
	n.cost = 1 + len(s.Required) + len(s.Properties)/16
	for name, names := range s.DependentRequired {
		n.cost += len(names)
		text += len(name)
	}
	for name, names := range s.Dependencies {
		text += len(name)
		if names, ok := names.([]string); ok {
			n.cost += len(names)
		}
	}
	for _, name := range s.Required {
		text += 2 * len(name)
	}
	for pattern := range s.PatternProperties {
		g.patterns[pattern.String()] = pattern
		n.perName += patternSteps(pattern.String())
	}
	if s.Pattern != nil {
		n.perChar = patternSteps(s.Pattern.String())
		text += len(s.Pattern.String())
	}
	n.cost += text / bytesPerUnit
	n.unique = s.UniqueItems
	for _, bound := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum} {
		if bound != nil {
			n.perNumber++
		}
	}
	if s.MultipleOf != nil {
		n.perNumber += 2 + (s.MultipleOf.Num().BitLen()+s.MultipleOf.Denom().BitLen())/64
	}
	if slices.Contains(s.Types, "integer") {
		n.perNumber++
	}
}

// values counts a value and everything in it.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += values(item)
		}
	case map[string]any:
		for _, item := range v {
			n += values(item)
		}
	}
	return n
}

// fits reports whether a visit goes past the type of a value.
func (n *node) fits(v any) bool {
	if len(n.types) == 0 {
		return true
	}
	for _, t := range n.types {
		switch v.(type) {
		case nil:
			if t == "null" {
				return true
			}
		case bool:
			if t == "boolean" {
				return true
			}
		case string:
			if t == "string" {
				return true
			}
		case []any:
			if t == "array" {
				return true
			}
		case map[string]any:
			if t == "object" {
				return true
			}
		default:
			if t == "number" || t == "integer" {
				return true
			}
		}
	}
	return false
}
