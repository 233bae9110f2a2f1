// Package schemas validates bodies and terms: it has one JSON Schema (2020-12)
// for each performative's body, one for an invitation's terms, and compiles the
// terms schemas that are registered at run time (PROTOCOL.md §4).
//
//	faults := schemas.Validate(performatives.Propose, message.RawBody)
//	for _, f := range faults {
//		fmt.Println(f.Path, f.Rule, f.Message) // /terms required terms is required
//	}
//
// The schemas of the bodies are generated from the Go types of package
// performatives, so a body without faults always decodes. Unknown fields are
// accepted. null is valid only where any value is.
//
// The package is pure and loads nothing: a $ref must stay within its own
// document. No input makes it panic.
package schemas

import (
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
)

//go:generate go run ../cmd/schemagen

//go:embed *.json contract/*.json
var files embed.FS

// invitation names the file with the schema of an invitation's terms. Get knows
// it by its PROPOSE type.
const invitation = "invitation"

// Names lists the schemas of Get: the thirteen acts in the protocol's order,
// then session-invitation.
func Names() []string {
	var names []string
	for _, act := range performatives.All() {
		names = append(names, act.String())
	}
	return append(names, performatives.SessionInvitation)
}

// Contracts lists the other schemas of Get: the parts of the contract that are not
// a body, such as the envelope and the replies.
func Contracts() []string {
	return []string{
		"envelope", "entry", "acceptance", "refusal", "resolution", "session-view", "session-snapshot", "session-list", "session-consumer",
		"agent-card", "check", "escalation-item", "escalation-list", "escalation-watch", "case-log",
	}
}

// Kind returns the kind of a schema of Get: body or contract.
func Kind(name string) string {
	if slices.Contains(Contracts(), name) {
		return "contract"
	}
	return "body"
}

// Get returns the schema with one of the Names or Contracts, such as PROPOSE.
func Get(name string) (jsontext.Value, bool) {
	switch {
	case slices.Contains(Contracts(), name):
		return read("contract/" + name), true
	case name == performatives.SessionInvitation:
		return read(invitation), true
	case performatives.Parse(name) != performatives.Unknown:
		return read(strings.ToLower(name)), true
	}
	return nil, false
}

// Components are the schemas of everything on the wire by name, as OpenAPI has them: the requests and
// replies of all verbs, and messages of any kind as unions by their performative.
func Components() jsontext.Value { return read("components") }

func read(name string) jsontext.Value {
	text, err := files.ReadFile(name + ".json")
	if err != nil { // an act without its file: run go generate
		panic("schemas: " + err.Error())
	}
	return text
}

// compiled holds each body's schema at its act and the invitation's at Unknown.
// Each is compiled on first use.
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

// shapes are the same schemas for canonical bodies; false for a schema that says more
// than a shape can.
var shapes [performatives.Acts]func() (*shape, bool)

func init() {
	for act := range shapes {
		shapes[act] = sync.OnceValues(func() (*shape, bool) { return shapeOf(compiled[act]().text) })
	}
}

// Validate returns the faults of an act's body, nil if there are none, sorted by
// path and at most MaxFaults. For an invitation it validates the terms too.
func Validate(p performatives.Performative, body jsontext.Value) []Fault {
	if fits(p, body) {
		return nil
	}
	return byLibrary(p, body)
}

// byLibrary validates with the JSON Schema library, which explains each fault.
func byLibrary(p performatives.Performative, body jsontext.Value) []Fault {
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
	return report(faults)
}

// fits reports whether a body is sure to have no faults. Most bodies have none.
func fits(p performatives.Performative, body jsontext.Value) bool {
	if p == performatives.Unknown || p >= performatives.Acts || !ijson.PlainlyCanonical(body) {
		return false
	}
	if s, ok := shapes[p](); !ok || !s.fits(body) {
		return false
	}
	if p != performatives.Propose {
		return true
	}
	var terms jsontext.Value
	for name, value := range ijson.Members(body) {
		switch string(name) {
		case "terms":
			terms = value
		case "type":
			if string(value) != `"`+performatives.SessionInvitation+`"` {
				return true
			}
		}
	}
	s, ok := shapes[performatives.Unknown]()
	return ok && s.fits(terms)
}

// invitationTerms returns the terms of a PROPOSE session-invitation. If they are
// not an object, the body's own schema reports it.
func invitationTerms(body any) (terms map[string]any, ok bool) {
	propose, _ := body.(map[string]any)
	if propose["type"] != performatives.SessionInvitation {
		return nil, false
	}
	terms, ok = propose["terms"].(map[string]any)
	return terms, ok
}

// ValidateInvitation returns the faults of the terms in a COUNTER of an
// invitation. Paths point into the body, so they start with /terms.
func ValidateInvitation(terms jsontext.Value) []Fault {
	v, err := decode(terms)
	if err != nil {
		return []Fault{{Path: "/terms", Rule: "type", Message: "terms is not JSON"}}
	}
	return report(compiled[performatives.Unknown]().faults(v, "/terms"))
}

// report sorts the faults, removes duplicates and keeps as many as fit a reply.
func report(faults []Fault) []Fault {
	slices.SortFunc(faults, Fault.compare)
	faults = slices.Compact(faults)
	return slices.Clip(bounded(withoutRedundantFormats(faults)))
}
