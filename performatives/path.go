package performatives

import (
	"iter"
	"strconv"
	"strings"
)

// maxSegments is deeper than any body nests, which bounds the work for a path.
const maxSegments = 64

// Find follows a dotted path, such as terms.items.0.price, into a JSON value as
// package json decodes it into any. in is the object or list that holds what was
// found. A key that has dots itself is found too.
func Find(v any, path string) (found, in any, ok bool) {
	for p := range Places(v, path) {
		return p.Value, p.In, true
	}
	return nil, nil, false
}

// A Place is where a path leads.
type Place struct {
	Value any
	In    any // the object or list that holds it
}

// Places are all that a path can mean: a.b is the member "a.b", and the member b of a.
func Places(v any, path string) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		if strings.Count(path, ".") <= maxSegments {
			places(v, path, yield)
		}
	}
}

func places(v any, path string, yield func(Place) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		if found, ok := v[path]; ok && !yield(Place{found, v}) {
			return false
		}
		for i := range len(path) {
			if path[i] != '.' {
				continue
			}
			if inner, has := v[path[:i]]; has && !places(inner, path[i+1:], yield) {
				return false
			}
		}
	case []any:
		head, rest, more := strings.Cut(path, ".")
		i, err := strconv.Atoi(head)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != head {
			return true
		}
		if !more {
			return yield(Place{v[i], v})
		}
		return places(v[i], rest, yield)
	}
	return true
}
