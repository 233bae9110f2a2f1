package mcpgateway

import "strconv"

// maxIndex bounds the place in an array that a path names.
const maxIndex = 100

// fill sets the member that a path names, and makes the objects that lead to it.
func fill(in any, path []string, value any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	switch in := in.(type) {
	case nil:
		return fill(object{}, path, value)
	case map[string]any:
		set, fits := fill(in[path[0]], path[1:], value)
		in[path[0]] = set
		return in, fits
	case []any:
		at, err := strconv.Atoi(path[0])
		if err != nil || at < 0 || at > min(len(in), maxIndex) {
			return in, false
		}
		if at == len(in) {
			in = append(in, nil)
		}
		set, fits := fill(in[at], path[1:], value)
		in[at] = set
		return in, fits
	default:
		return in, false
	}
}
