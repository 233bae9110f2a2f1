package main

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/parley-asp/parley/performatives"
)

// base is the URL in the schemas' $id. Nobody fetches them from there: every
// broker serves them (PROTOCOL.md §4).
const base = "https://parley-asp.github.io/schemas/asp-0.1/"

// generate makes the schema files, keyed by name. It reads the types' comments
// from the Go files in dir, which is relative to the package at.
func generate(at, dir string) (map[string][]byte, error) {
	r, err := reflector(at, dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, act := range performatives.All() {
		s := r.Reflect(performatives.NewBody(act))
		switch act {
		case performatives.Inform:
			informs(s, r)
		case performatives.Escalate:
			escalates(s)
		default:
		}
		s.Title = act.String()
		if err := write(files, strings.ToLower(s.Title), s, reflect.TypeOf(performatives.NewBody(act)).Elem()); err != nil {
			return nil, err
		}
	}
	invitation := r.Reflect(performatives.InvitationTerms{})
	invitation.Title = performatives.SessionInvitation
	if err := write(files, "invitation", invitation, reflect.TypeFor[performatives.InvitationTerms]()); err != nil {
		return nil, err
	}
	if err := contracts(files, at, dir); err != nil {
		return nil, err
	}
	all, err := components(at, dir)
	if err == nil {
		files["components.json"], err = json.MarshalIndent(all, "", " ")
	}
	return files, err
}

// reflector returns what makes schemas of Go types, with the comments of the Go files
// in these directories, which are relative to the package at.
func reflector(at string, dirs ...string) (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{
		Anonymous:                 true, // each root gets its own $id below
		AllowAdditionalProperties: true, // unknown body fields are kept
		DoNotReference:            true,
		ExpandedStruct:            true,
		Mapper:                    anyValue,
	}
	for _, dir := range dirs {
		if err := r.AddGoComments(at, dir); err != nil {
			return nil, err
		}
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = plain(comment, name[strings.LastIndexByte(name, '.')+1:])
	}
	return r, nil
}

// plain removes the Go type's name from its comment, since it means nothing to
// readers of a schema.
func plain(comment, name string) string {
	for _, start := range []string{name + " is ", name + " are ", "A " + name + " is ", "An " + name + " is "} {
		if rest, ok := strings.CutPrefix(comment, start); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return comment
}

// anyValue is the schema of a field that keeps its JSON text: any value. If only
// an object is valid, the field's tag says so.
func anyValue(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[jsontext.Value]() {
		return &jsonschema.Schema{}
	}
	return nil
}

// informs adds what tags cannot express: INFORM has type or informType, and some types have data of
// their own shape: a ruling (PROTOCOL.md §4, §7), and what is said of commitments (COMMITMENTS.md C2).
func informs(s *jsonschema.Schema, r *jsonschema.Reflector) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"type"}}, {Required: []string{"informType"}}}
	ruling := r.Reflect(performatives.RulingData{})
	closeAuthority(ruling)
	seals(ruling, performatives.SealAuthority, performatives.SealComment)
	for _, shape := range []struct {
		kind string
		data *jsonschema.Schema
		has  []string // what data has if it is of this shape
	}{
		{performatives.Result, r.Reflect(performatives.ResultData{}), []string{"commitmentId"}},
		{performatives.Progress, r.Reflect(performatives.ProgressData{}), []string{"commitmentId"}},
		{performatives.Resolution, r.Reflect(performatives.DecisionData{}), []string{"disputeId"}},
		{performatives.Resolution, ruling, nil},
		{performatives.Waiver, r.Reflect(performatives.WaiverData{}), nil},
		{performatives.Dispute, r.Reflect(performatives.DisputeData{}), nil},
		{performatives.Reply, r.Reflect(performatives.ReplyData{}), nil},
		{performatives.Event, r.Reflect(performatives.EventData{}), nil},
	} {
		shape.data.Version = ""
		s.If, s.Then = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			ofType("type", shape.kind, shape.has), ofType("informType", shape.kind, shape.has),
		}}, having("data", shape.data)
		s.Else = &jsonschema.Schema{}
		s = s.Else
	}
}

// having is the schema of an object whose member has a schema.
func having(name string, of *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	s.Properties.Set(name, of)
	return s
}

// escalates adds that the context is open or sealed.
func escalates(s *jsonschema.Schema) {
	seals(s, performatives.SealContext, performatives.SealSuggested)
	sealed := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"sealed"}}
	sealed.Properties.Set("sealed", &jsonschema.Schema{Required: []string{performatives.SealContext}})
	s.AnyOf = []*jsonschema.Schema{{Required: []string{performatives.SealContext}}, sealed}
}

// seals names the members whose digests may stand in sealed.
func seals(s *jsonschema.Schema, members ...string) {
	of, ok := s.Properties.Get("sealed")
	if !ok {
		return
	}
	one := uint64(1)
	of.MinProperties, of.Properties, of.AdditionalProperties = &one, jsonschema.NewProperties(), jsonschema.FalseSchema
	for _, name := range members {
		of.Properties.Set(name, &jsonschema.Schema{Type: "string", Pattern: "^sha256:[0-9a-f]{64}$"})
	}
}

// closeAuthority refuses fields of an authority that nobody knows: a bound that is
// misspelt would bind nothing.
func closeAuthority(ruling *jsonschema.Schema) {
	if authority, ok := ruling.Properties.Get("authority"); ok {
		authority.AdditionalProperties = jsonschema.FalseSchema
		if bounds, ok := authority.Properties.Get("bounds"); ok {
			bounds.Items.AdditionalProperties = jsonschema.FalseSchema
		}
	}
}

// ofType is an INFORM of a type, under one of its two names, whose data has some members.
func ofType(field, kind string, has []string) *jsonschema.Schema {
	s := having(field, &jsonschema.Schema{Const: kind})
	s.Required = []string{field}
	if has != nil {
		s.Properties.Set("data", &jsonschema.Schema{Type: "object", Required: has})
		s.Required = append(s.Required, "data")
	}
	return s
}

func write(files map[string][]byte, name string, s *jsonschema.Schema, t reflect.Type) error {
	name += ".json"
	s.ID = jsonschema.ID(base + path.Base(name))
	// "ProposeBody makes an offer" becomes "PROPOSE makes an offer".
	s.Description = strings.ReplaceAll(s.Description, t.Name(), s.Title)
	boundIDs(s)
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	text := jsontext.Value(raw)
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	files[name] = append(text, '\n')
	return nil
}

// boundIDs adds the length of an id for readers that do not know asp-id, which
// counts bytes where JSON Schema counts characters (PROTOCOL.md §1).
func boundIDs(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Format == "asp-id" {
		shortest, longest := uint64(1), uint64(performatives.MaxID)
		s.MinLength, s.MaxLength = &shortest, &longest
	}
	boundIDs(s.Items)
	boundIDs(s.Then)
	boundIDs(s.Else)
	for _, one := range s.AnyOf {
		boundIDs(one)
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		boundIDs(p.Value)
	}
}
