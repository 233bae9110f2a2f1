// Package schemas is the shape of what can be said: one JSON Schema (2020-12)
// for each performative's body, one for an invitation's terms, and the terms
// schemas that are registered at run time (PROTOCOL.md §4).
//
//	faults := schemas.Validate(performatives.Propose, message.RawBody)
//	for _, f := range faults {
//		fmt.Println(f.Path, f.Rule, f.Message) // /terms required terms is required
//	}
//
// The schemas of the bodies are generated from the Go types of package
// performatives, so that a body without faults always decodes. Unknown fields
// are kept, never refused. null stands only where any value may.
//
// The package is pure, and nothing is ever loaded: a $ref stays within its own
// document. No input makes it panic.
package schemas

import (
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

//go:generate go run ./gen

//go:embed *.json
var files embed.FS

// invitation is the file of the invitation's terms, published by the name of
// its PROPOSE type.
const invitation = "invitation"

// Names lists the schemas that Get knows: the thirteen acts in the protocol's
// order, then session-invitation.
func Names() []string {
	var names []string
	for _, act := range performatives.All() {
		names = append(names, act.String())
	}
	return append(names, performatives.SessionInvitation)
}

// Get is the schema with one of the Names, such as PROPOSE.
func Get(name string) (jsontext.Value, bool) {
	switch {
	case name == performatives.SessionInvitation:
		return read(invitation), true
	case performatives.Parse(name) != performatives.Unknown:
		return read(strings.ToLower(name)), true
	}
	return nil, false
}

// Body is the schema of the act's body, nil for Unknown.
func Body(p performatives.Performative) jsontext.Value {
	schema, _ := Get(p.String())
	return schema
}

func read(name string) jsontext.Value {
	text, err := files.ReadFile(name + ".json")
	if err != nil { // an act without its file: run go generate
		panic("schemas: " + err.Error())
	}
	return text
}

// compiled has each body's schema at its act and the invitation's at Unknown,
// each compiled when it is first asked for.
var compiled [performatives.Acts]func() *document

func init() {
	for act := range compiled {
		name := strings.ToLower(performatives.Performative(act).String())
		if act == int(performatives.Unknown) {
			name = invitation
		}
		compiled[act] = sync.OnceValue(func() *document { return mustCompile(read(name)) })
	}
}

// Validate finds what is wrong with the body of an act, nil if nothing is. The
// terms of an invitation are part of it. At most MaxFaults are told, sorted by
// path.
func Validate(p performatives.Performative, body jsontext.Value) []Fault {
	if performatives.NewBody(p) == nil {
		return []Fault{{Rule: "enum", Message: "the act is none of the thirteen performatives"}}
	}
	v, err := decode(body)
	if err != nil {
		return []Fault{{Rule: "type", Message: "the body is not JSON"}}
	}
	faults := compiled[p]().faults(v, "")
	if p == performatives.Propose {
		if terms, ok := invitationTerms(v); ok {
			faults = append(faults, compiled[performatives.Unknown]().faults(terms, "/terms")...)
		}
	}
	return told(faults)
}

// invitationTerms are those of a PROPOSE session-invitation; without an object
// there the body's own schema says so.
func invitationTerms(body any) (terms map[string]any, ok bool) {
	propose, _ := body.(map[string]any)
	if propose["type"] != performatives.SessionInvitation {
		return nil, false
	}
	terms, ok = propose["terms"].(map[string]any)
	return terms, ok
}

// ValidateInvitation finds what is wrong with an invitation's terms, for a
// COUNTER of one. Paths point into the body, so they start with /terms.
func ValidateInvitation(terms jsontext.Value) []Fault {
	v, err := decode(terms)
	if err != nil {
		return []Fault{{Path: "/terms", Rule: "type", Message: "terms is not JSON"}}
	}
	return told(compiled[performatives.Unknown]().faults(v, "/terms"))
}

// told sorts the faults and drops what a reader would only be told twice.
func told(faults []Fault) []Fault {
	slices.SortFunc(faults, Fault.compare)
	faults = slices.Compact(faults)
	return slices.Clip(bounded(withoutEchoes(faults)))
}
