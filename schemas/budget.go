package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Budget bounds the work of checking an offer's terms against a terms schema. One unit
// is about one subschema that is applied to one small value.
const Budget = 1 << 17

// A meter adds up what a validation will cost before it runs. It goes where the library
// would go, and into every branch, but compares nothing, so it costs a small part of that.
// It never counts less than the library visits.
type meter struct{ left int }

// work returns the units that checking a value costs, at most Budget+1.
func work(root *node, v any) int {
	m := meter{left: Budget}
	m.visit(root, v, place{})
	return Budget - max(m.left, -1)
}

// A place is where a visit is, in the terms and in the schema: every visit copies the
// first and every error both.
type place struct {
	pointer  int // bytes of the path into the terms
	keywords int // bytes of the path of keywords
	depth    int // of keywords
}

func (p place) below(name int) place {
	return place{p.pointer + name + 1, p.keywords + name + len("properties/"), p.depth + 1}
}

func (m *meter) spend(units int) bool {
	m.left -= units
	return m.left >= 0
}

func (m *meter) visit(n *node, v any, at place) {
	// The library writes the path of keywords piece by piece, each time anew.
	if !m.spend(n.cost+(at.pointer+at.depth*at.keywords/2)/bytesPerUnit) || n.never || !n.fits(v) {
		return
	}
	switch v := v.(type) {
	case string:
		m.spend(len(v)/bytesPerUnit + len(v)*n.perChar/stepsPerUnit)
	case json.Number:
		m.spend(n.perNumber * numberUnits(v))
	case map[string]any:
		m.object(n, v, at)
	case []any:
		m.array(n, v, at)
	}
	for _, sub := range n.inPlace {
		if m.left < 0 {
			return
		}
		m.visit(sub.node, v, place{at.pointer, at.keywords + sub.path, at.depth + 1})
	}
}

// stepsPerUnit is how many steps of regular expressions cost as much as one visit.
const stepsPerUnit = 256

// perChild is how many members or items cost as much as one visit: for each visit of
// an object or a list, the library notes all of them as not evaluated yet.
const perChild = 8

func (m *meter) object(n *node, v map[string]any, at place) {
	m.spend(len(v)/perChild + n.composite/perChild)
	for name, member := range v {
		if m.left < 0 {
			return
		}
		below := at.below(len(name))
		m.spend(len(name)/bytesPerUnit + (len(name)+1)*n.perName/stepsPerUnit)
		if sub := n.properties[name]; sub != nil {
			m.visit(sub, member, below)
		}
		for _, sub := range n.members {
			m.visit(sub, member, below)
		}
		for _, sub := range n.names {
			m.visit(sub, name, below)
		}
	}
}

func (m *meter) array(n *node, v []any, at place) {
	m.spend(len(v)/perChild + n.composite/perChild)
	if n.unique {
		m.spend(uniqueUnits(v))
	}
	below := at.below(len("100000"))
	for i, item := range v {
		if m.left < 0 {
			return
		}
		if i < len(n.prefix) {
			m.visit(n.prefix[i], item, below)
		}
		for _, sub := range n.items {
			m.visit(sub, item, below)
		}
	}
}

// uniqueUnits is the work of finding two equal items. Objects and lists can be made so
// that the library's hashes of them are all equal, and it compares each pair.
func uniqueUnits(v []any) int {
	composite := 0
	for _, item := range v {
		switch item.(type) {
		case map[string]any, []any:
			composite++
		}
	}
	return values(v)/2 + composite*composite/32
}

// numberUnits is the work with a number, which is exact: an exponent is written out.
func numberUnits(n json.Number) int {
	if strings.ContainsAny(string(n), "eE") {
		return 16
	}
	return 1
}

// overBudget is the fault of terms that would cost more than the budget.
func overBudget(path string) []Fault {
	return []Fault{{
		Path: path, Rule: "budget",
		Message: fmt.Sprintf("%s would take more than %d steps to check against the schema; say it with less", name(path), Budget),
	}}
}
