package httpgateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// query reads the query's parameters as members of the verb's request.
func (c *call) query(members map[string]jsontext.Value) error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return malformed("", "the query is not percent-encoded as it should be")
	}
	takes := c.route.parameters()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := slices.IndexFunc(takes, func(p parameter) bool { return p.name == name })
		switch {
		case at < 0:
			return unknownParameter(name, takes)
		case len(values[name]) != 1 && !takes[at].list():
			return malformed("/"+clip(name), "is there more than once")
		}
		p := takes[at]
		value, err := p.value(values[name])
		if err != nil {
			return malformed("/"+clip(name), err.Error())
		}
		if _, twice := members[p.member]; twice {
			return malformed("/"+clip(name), "says the same as another parameter")
		}
		members[p.member] = value
	}
	return nil
}

// unknownParameter refuses a parameter that may be another one misspelt.
func unknownParameter(name string, takes []parameter) error {
	names := make([]string, len(takes))
	for i, p := range takes {
		names[i] = p.name
	}
	slices.Sort(names)
	return malformed("/"+clip(name), "the path takes no such parameter; it takes "+cmp.Or(strings.Join(names, ", "), "none"))
}

// A parameter is a member of a verb's request in a query.
type parameter struct {
	name, member string
	of           reflect.Type
}

// parameters are those of the query: all members of the verb's request that are not in
// the path, by the names that HTTP has for them.
func (r *route) parameters() (all []parameter) {
	if r.body != noBody || r.verb.Request == nil {
		return nil
	}
	if r.resumes != "" {
		return []parameter{{r.resumes, r.resumes, reflect.TypeFor[uint64]()}}
	}
	inPath := r.at.Members()
	if slices.Contains(inPath, "messageId") {
		return nil
	}
	types := map[string]reflect.Type{}
	for _, f := range api.Members(r.verb.Request) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		types[name] = t
		renamed := slices.ContainsFunc(r.verb.Query, func(q api.Query) bool { return q.Member == name })
		if !renamed && !slices.Contains(inPath, name) {
			all = append(all, parameter{name, name, t})
		}
	}
	for _, q := range r.verb.Query {
		all = append(all, parameter{q.Parameter, q.Member, types[q.Member]})
	}
	return all
}

// list reports whether the parameter may come several times, once for each text of a list.
func (p parameter) list() bool {
	return p.of.Kind() == reflect.Slice && p.of.Elem().Kind() == reflect.String
}

// simple reports whether a query can have it.
func (p parameter) simple() bool {
	switch p.of.Kind() {
	case reflect.Struct, reflect.Map:
		return false
	case reflect.Slice:
		return p.list()
	}
	return true
}

func (p parameter) value(all []string) (jsontext.Value, error) {
	if p.list() {
		texts := make([]jsontext.Value, len(all))
		for i, s := range all {
			texts[i] = text(s)
		}
		return json.Marshal(texts)
	}
	s := all[0]
	switch p.of.Kind() {
	case reflect.String:
		return text(s), nil
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, errors.New("is true or false")
		}
		return jsontext.Value(strconv.FormatBool(b)), nil
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != f || f-f != 0 {
			return nil, errors.New("is not a number")
		}
		data, err := json.Marshal(f)
		return data, err
	default:
		n, err := strconv.ParseUint(s, 10, 64)
		switch valid := err == nil && n <= maxInteger; {
		case p.member == "limit" && (!valid || n == 0):
			return nil, fmt.Errorf("is not a whole number from 1 to %d", maxPage)
		case !valid:
			return nil, fmt.Errorf("is not a whole number from 0 to %d", uint64(maxInteger))
		case p.member == "limit":
			n = min(n, maxPage) // next leads to the others
		}
		return jsontext.Value(strconv.FormatUint(n, 10)), nil
	}
}

func (p parameter) schema() object {
	switch {
	case p.of == reflect.TypeFor[jsontext.Value]():
		return object{}
	case p.list():
		return object{"type": "array", "items": object{"type": []string{"string", "null"}}}
	}
	switch p.of.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	}
	least := 0
	if p.member == "limit" {
		least = 1
	}
	return object{"type": "integer", "minimum": least, "maximum": maxInteger}
}
