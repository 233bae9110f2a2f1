package schemas

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A Fault is one error in a body (PROTOCOL.md §9, details of schema_invalid).
type Fault struct {
	// Path is a JSON pointer into the body, "" for the body itself. For a
	// missing field it points to where the field belongs.
	Path string `json:"path"`
	// Rule is the JSON Schema keyword that is violated, or "schema" if there is
	// no keyword for it.
	Rule string `json:"rule"`
	// Message explains the fault to a person. It names fields, never their values.
	Message string `json:"message"`
}

// MaxFaults is the most faults reported of one body.
const MaxFaults = 32

const (
	maxFaultBytes = 16 << 10 // of all faults of one body
	maxPath       = 512      // bytes; a longer one is cut to an enclosing value
)

func (f Fault) compare(g Fault) int {
	return cmp.Or(strings.Compare(f.Path, g.Path), strings.Compare(f.Rule, g.Rule), strings.Compare(f.Message, g.Message))
}

// withoutRedundantFormats drops a format fault where a length fault says the same.
func withoutRedundantFormats(faults []Fault) []Fault {
	byLength := map[string]bool{}
	for _, f := range faults {
		if f.Rule == "minLength" || f.Rule == "maxLength" {
			byLength[f.Path] = true
		}
	}
	return slices.DeleteFunc(faults, func(f Fault) bool { return f.Rule == "format" && byLength[f.Path] })
}

// bounded keeps as many faults as fit a reply, at least one.
func bounded(faults []Fault) []Fault {
	size := 0
	for i, f := range faults {
		size += len(f.Path) + len(f.Rule) + len(f.Message)
		if i == MaxFaults || (i > 0 && size > maxFaultBytes) {
			return faults[:i]
		}
	}
	return faults
}

// leaves selects from the library's tree of errors those that a sender can fix.
type leaves struct {
	document *document
	instance any    // the validated value
	path     string // of the instance in the body
}

func (l leaves) of(e *jsonschema.ValidationError) []Fault {
	if len(e.Causes) == 0 {
		return l.leaf(e)
	}
	if e.Message != "" { // an error without a message only groups its causes
		switch _, keyword := split(e); keyword {
		case "anyOf", "oneOf":
			return l.branches(e, keyword)
		case "minContains":
			return l.leaf(e)
		}
	}
	var faults []Fault
	for _, cause := range e.Causes {
		faults = append(faults, l.of(cause)...)
	}
	return faults
}

// branches reports the faults of the closest branch of an anyOf or oneOf: the one
// with the fewest faults among those that the value's type fits. In a tie it
// reports only that no branch is met.
func (l leaves) branches(e *jsonschema.ValidationError, keyword string) []Fault {
	path := l.pointer(e)
	var near []Fault
	var missing []string // fields of branches that lack one field only
	ties := 0
	for _, cause := range e.Causes {
		faults := report(l.of(cause))
		if len(faults) == 1 && faults[0].Rule == "required" {
			missing = append(missing, faults[0].Path)
		}
		if slices.ContainsFunc(faults, func(f Fault) bool { return f.Path == path && f.Rule == "type" }) {
			continue
		}
		switch {
		case ties == 0 || len(faults) < len(near):
			near, ties = faults, 1
		case len(faults) == len(near):
			ties++
		}
	}
	switch {
	case len(missing) > 1 && len(missing) == len(e.Causes):
		names := make([]string, len(missing))
		for i, m := range missing {
			names[i] = name(m)
		}
		return []Fault{{missing[0], "required", clip(strings.Join(names, " or "), maxMessage) + " is required"}}
	case ties == 1:
		return near
	}
	return []Fault{{path, keyword, name(path) + " has none of the forms that its schema allows"}}
}

// isNull ends the message of a fault whose value is null, which is easily meant as absent.
const isNull = ", and is null"

// leaf returns the faults of one error: one for each missing or unexpected field,
// and otherwise a single fault.
func (l leaves) leaf(e *jsonschema.ValidationError) []Fault {
	path := l.pointer(e)
	where, keyword := split(e)
	value := at(l.document.text, where)
	fields, _ := at(l.instance, e.InstanceLocation).(map[string]any)
	var faults []Fault
	switch {
	case e.Message == "not allowed": // the schema false
		return []Fault{{path, "schema", name(path) + " is not allowed here"}}
	case keyword == "required":
		list, _ := value.([]any)
		for _, field := range list {
			if field, ok := field.(string); ok && !has(fields, field) {
				missing := below(path, field)
				faults = append(faults, Fault{missing, keyword, name(missing) + " is required"})
			}
		}
	case keyword == "additionalProperties":
		schema := at(l.document.text, strings.TrimSuffix(where, "/"+keyword))
		for field := range fields {
			if !l.document.declares(schema, field) {
				extra := below(path, field)
				faults = append(faults, Fault{extra, keyword, name(extra) + " is not allowed here"})
			}
		}
	case keyword == "dependentRequired" || keyword == "dependencies":
		if field, ok := value.(string); ok {
			missing := below(path, field)
			faults = append(faults, Fault{missing, keyword, name(missing) + " is required beside " + beside(where)})
		}
	}
	if faults == nil {
		says := name(path) + " " + says(keyword, value)
		if at(l.instance, e.InstanceLocation) == nil && slices.Contains([]string{"type", "enum", "const"}, keyword) {
			says = clip(says, maxMessage-len(isNull)) + isNull
		}
		faults = []Fault{{path, keyword, clip(says, maxMessage)}}
	}
	return faults
}

func has(fields map[string]any, field string) bool {
	_, ok := fields[field]
	return ok
}

// declares reports whether an object's schema names the field.
func (d *document) declares(schema any, field string) bool {
	if properties, ok := at(schema, "/properties").(map[string]any); ok && has(properties, field) {
		return true
	}
	patterns, _ := at(schema, "/patternProperties").(map[string]any)
	for pattern := range patterns {
		if re := d.patterns[pattern]; re != nil && re.MatchString(field) {
			return true
		}
	}
	return false
}

// split returns the JSON pointer of the violated keyword in the schema, and the
// keyword: the last token, or the third from the end for a dependency.
func split(e *jsonschema.ValidationError) (where, keyword string) {
	_, where, _ = strings.Cut(e.AbsoluteKeywordLocation, "#")
	tokens := strings.Split(where, "/")
	n := len(tokens)
	if n > 3 && (tokens[n-3] == "dependentRequired" || tokens[n-3] == "dependencies") {
		if _, err := strconv.Atoi(tokens[n-1]); err == nil {
			return where, tokens[n-3]
		}
	}
	return where, tokens[n-1]
}

// beside returns the field whose presence requires another.
func beside(where string) string {
	tokens := strings.Split(where, "/")
	return clip(unescape(tokens[len(tokens)-2]), maxName)
}

// pointer returns the error's path in the body. The library escapes pointers for
// URLs.
func (l leaves) pointer(e *jsonschema.ValidationError) string {
	path, err := url.PathUnescape(e.InstanceLocation)
	if err != nil {
		path = ""
	}
	return shorten(l.path + path)
}

func below(path, field string) string {
	return shorten(string(jsontext.Pointer(path).AppendToken(field)))
}

func shorten(path string) string {
	for len(path) > maxPath {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return path
}

// unescape decodes one token of the library's pointers.
func unescape(token string) string {
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

func child(v any, token string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[unescape(token)]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
