package performatives

import (
	"strconv"
	"strings"
)

// maxSegments is deeper than any body nests, which bounds the work for a path.
const maxSegments = 64

// Find follows a dotted path, such as terms.items.0.price, into a JSON value as
// package json decodes it into any. in is the object or list that holds what was
// found. A key that has dots itself is found too.
func Find(v any, path string) (found, in any, ok bool) {
	if strings.Count(path, ".") > maxSegments {
		return nil, nil, false
	}
	return find(v, path)
}

func find(v any, path string) (found, in any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		if found, ok := v[path]; ok {
			return found, v, true
		}
		for i := range len(path) {
			if path[i] != '.' {
				continue
			}
			if inner, has := v[path[:i]]; has {
				if found, in, ok := find(inner, path[i+1:]); ok {
					return found, in, true
				}
			}
		}
	case []any:
		head, rest, more := strings.Cut(path, ".")
		i, err := strconv.Atoi(head)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != head {
			return nil, nil, false
		}
		if !more {
			return v[i], v, true
		}
		return find(v[i], rest)
	}
	return nil, nil, false
}
