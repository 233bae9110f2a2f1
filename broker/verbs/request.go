package verbs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// readRequest reads a request into what request points to. An empty one is {}. A member that the verb does
// not take is refused, since it may be another one misspelt, and so is a required one that
// is missing: one whose field has no omitzero.
func readRequest(data []byte, request any) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	canonical, err := performatives.Canonical(data)
	if err != nil {
		return session.RefuseUnreadable(err)
	}
	given := map[string]jsontext.Value{}
	if err := performatives.Unmarshal(canonical, &given, ""); err != nil {
		return session.RefuseUnreadable(err)
	}
	if err := members(reflect.TypeOf(request).Elem(), given); err != nil {
		return session.RefuseUnreadable(err)
	}
	if _, ordered := request.(interface{ InOrder() }); ordered {
		canonical = data // it is as valid, with its members in the order in which they came
	}
	if err := performatives.Unmarshal(canonical, request, ""); err != nil {
		return session.RefuseUnreadable(err)
	}
	return nil
}

// members holds the members of a request against the fields of its type.
func members(request reflect.Type, given map[string]jsontext.Value) error {
	var takes []string
	missing := ""
	for _, field := range api.Members(request) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		takes = append(takes, name)
		if value := given[name]; missing == "" && options != "omitzero" && (len(value) == 0 || value.Kind() == 'n') {
			missing = name
		}
	}
	for name := range given {
		if !slices.Contains(takes, name) {
			return &performatives.Malformed{Path: pointer(name), Why: fmt.Sprintf("the verb does not take it; it takes %s", orNothing(takes))}
		}
	}
	if missing != "" {
		return &performatives.Malformed{Path: pointer(missing), Why: "is missing"}
	}
	return nil
}

func pointer(name string) string {
	const most = 128
	return string(jsontext.Pointer("").AppendToken(name[:min(len(name), most)]))
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no members"
	}
	return strings.Join(names, ", ")
}
