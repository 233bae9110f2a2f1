package main

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// contract has the type of each schema of schemas.Contracts, and its title.
var contract = map[string]struct {
	title string
	of    any
	doc   string // instead of the type's comment
}{
	"envelope":         {"Envelope", envelope{}, "One act as its sender sends it. Unknown fields are kept, signed and hashed."},
	"entry":            {"Entry", entry{}, "An envelope as the broker accepted it, keeps it in the transcript, and delivers it."},
	"acceptance":       {"Acceptance", api.Acceptance{}, ""},
	"refusal":          {"Refusal", api.ErrorReply{}, ""},
	"resolution":       {"Resolution", performatives.RulingData{}, ""},
	"session-view":     {"Session view", api.SessionView{}, ""},
	"session-snapshot": {"Session snapshot", api.Snapshot{}, ""},
	"session-list":     {"Session list", api.Sessions{}, ""},
	"session-consumer": {"Session consumer", api.Consumer{}, ""},
	"agent-card":       {"Agent card", api.Card{}, ""},
	"check":            {"Check", api.Check{}, ""},
	"escalation-item":  {"Escalation item", api.EscalationItem{}, ""},
	"escalation-list":  {"Escalation list", api.Escalations{}, ""},
	"escalation-watch": {"Escalation watch", api.Watched{}, ""},
	"case-log":         {"Case log", api.CaseLog{}, ""},
}

// contracts makes the schemas that are not of a body. dir is that of package performatives.
func contracts(files map[string][]byte, at, dir string) error {
	r, err := wireReflector(at, dir)
	if err != nil {
		return err
	}
	if len(contract) != len(schemas.Contracts()) {
		return fmt.Errorf("%d types of %d contract schemas", len(contract), len(schemas.Contracts()))
	}
	for _, name := range schemas.Contracts() {
		c, ok := contract[name]
		if !ok {
			return fmt.Errorf("contract schema %s has no type", name)
		}
		s := r.Reflect(c.of)
		s.Title = c.title
		if c.doc != "" {
			s.Description = c.doc
		}
		if name == refusal {
			if err := detailed(r, s); err != nil {
				return err
			}
		}
		if name == "resolution" {
			closeAuthority(s)
			seals(s, performatives.SealAuthority, performatives.SealComment)
		}
		if err := write(files, path.Join("contract", name), s, reflect.TypeOf(c.of)); err != nil {
			return err
		}
	}
	return nil
}

// refusal is the schema of what every request may be answered with.
const refusal = "refusal"

// detailed types the details of a refusal: faults of a schema_invalid, members of any other.
func detailed(r *jsonschema.Reflector, s *jsonschema.Schema) error {
	of, ok := s.Properties.Get("error")
	if !ok {
		return errors.New("a refusal has no error")
	}
	faults := r.Reflect([]session.Fault{})
	faults.Version, faults.ID = "", ""
	members := &jsonschema.Schema{Type: "object"}
	of.Properties.Set("details", &jsonschema.Schema{OneOf: []*jsonschema.Schema{faults, members}})
	only := func(name string, s *jsonschema.Schema) *jsonschema.Schema {
		one := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		one.Properties.Set(name, s)
		return one
	}
	of.If = only("code", &jsonschema.Schema{Const: session.SchemaInvalid})
	of.Then = only("details", &jsonschema.Schema{Type: "array"})
	of.Then.Required = []string{"details"}
	of.Else = only("details", &jsonschema.Schema{Type: "object"})
	return nil
}

// wireReflector makes schemas of the types of requests and replies.
func wireReflector(at, dir string) (*jsonschema.Reflector, error) {
	root := path.Dir(dir)
	r, err := reflector(at, dir, path.Join(root, "api"), path.Join(root, "session"), path.Join(root, "escalation"), path.Join(root, "delegation"))
	if err != nil {
		return nil, err
	}
	r.Mapper = named
	return r, nil
}

// named is the schema of a type that the wire has as text, or as any value.
func named(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[performatives.Agent]():
		return &jsonschema.Schema{Type: "string", Pattern: "^(agent|human|broker)://"}
	case reflect.TypeFor[performatives.Key]():
		return &jsonschema.Schema{Type: "string", Pattern: "^U[A-Z2-7]{55}$"}
	case reflect.TypeFor[performatives.Hash]():
		return &jsonschema.Schema{Type: "string", Pattern: "^sha256:[0-9a-f]{64}$"}
	case reflect.TypeFor[performatives.SessionID](), reflect.TypeFor[performatives.MessageID]():
		return &jsonschema.Schema{Type: "string", Format: "uuid"}
	case reflect.TypeFor[api.Cursor]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "integer"}}}
	case reflect.TypeFor[performatives.Performative]():
		return texts(performatives.All())
	case reflect.TypeFor[session.Phase]():
		return texts(session.Phases())
	case reflect.TypeFor[session.Code]():
		return texts(slices.Sorted(slices.Values(session.Codes())))
	}
	return anyValue(t)
}

// texts is the schema of one of these values.
func texts[T any](values []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for text := range slices.Values(values) {
		s.Enum = append(s.Enum, fmt.Sprint(text))
	}
	return s
}
