package mcpgateway

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	act "github.com/parley-asp/parley/performatives"
)

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

// leads reports whether there is something where a path leads.
func leads(in any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch in := in.(type) {
	case map[string]any:
		member, has := in[path[0]]
		return has && leads(member, path[1:])
	case []any:
		at, err := strconv.Atoi(path[0])
		return err == nil && at >= 0 && at < len(in) && leads(in[at], path[1:])
	default:
		return false
	}
}

// empty reports whether a value is one that is not written.
func empty(value jsontext.Value) bool {
	text := strings.TrimSpace(string(value))
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && number == 0 || slices.Contains([]string{"", "null", `""`, "false", "[]", "{}"}, text)
}

// carriedData is the data of what carries out an agreement, by the type of the INFORM.
var carriedData = map[string]reflect.Type{
	act.Result: reflect.TypeFor[act.ResultData](), act.Progress: reflect.TypeFor[act.ProgressData](), act.Waiver: reflect.TypeFor[act.WaiverData](),
	act.Dispute: reflect.TypeFor[act.DisputeData](), act.Reply: reflect.TypeFor[act.ReplyData](), act.Resolution: reflect.TypeFor[act.DecisionData](),
}

// dataMembers are those of the data of a move that carries out what was agreed.
func dataMembers(m api.Move) (names []string) {
	var body struct {
		Type string `json:"type"`
	}
	if actionNamed(m) == strings.ToLower(m.Performative) || json.Unmarshal(m.Body, &body) != nil || carriedData[body.Type] == nil {
		return nil
	}
	for field := range carriedData[body.Type].Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// optional are the paths of what a move that carries out what was agreed may say beside what it fills.
func optional(m api.Move) (paths []string) {
	var body struct {
		Data map[string]jsontext.Value `json:"data"`
	}
	if json.Unmarshal(m.Body, &body) != nil {
		return nil
	}
	for _, name := range dataMembers(m) {
		if path := "data." + name; body.Data[name] == nil && name != "shown" && !slices.Contains(m.Fill, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
