package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// refs begins a reference to one of them, in OpenAPI and in AsyncAPI.
const refs = "#/components/schemas/"

func refTo(name string) object { return object{"$ref": refs + name} }

// Types that are on the wire only in parts, or made of maps.
type (
	// An act is what HTTP takes of a Say.
	act struct {
		Performative string                  `json:"performative"`
		Body         object                  `json:"body"`
		Recipient    *recipient              `json:"recipient,omitzero"`
		Constraints  *constraints            `json:"constraints,omitzero"`
		Open         bool                    `json:"open,omitzero" jsonschema:"description=The other sides read what is usually sealed\\, too"`
		Message      performatives.MessageID `json:"messageId,omitzero" jsonschema:"pattern=^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"`
	}
	// An answer is what a hosted principal answers a turn with.
	answer struct {
		Performative string     `json:"performative"`
		Body         object     `json:"body"`
		Assessment   object     `json:"assessment,omitzero" jsonschema:"description=Becomes a member of body"`
		Message      string     `json:"message,omitzero" jsonschema:"description=Becomes a member of body"`
		Recipient    *recipient `json:"recipient,omitzero"`
	}
	// A told is what monitors are told; what it has is by its kind.
	told struct {
		Kind         string                     `json:"kind" jsonschema:"enum=state,enum=timeout,enum=refused,enum=escalated,enum=resumed,enum=closed,enum=limited"`
		Session      string                     `json:"sessionId"` // - of an event that is about none
		At           string                     `json:"at"`
		State        session.Phase              `json:"state,omitzero"`
		From         session.Phase              `json:"from,omitzero"`
		Sequence     uint64                     `json:"sequenceNumber,omitzero"`
		Performative performatives.Performative `json:"performative,omitzero"`
		Sender       performatives.Agent        `json:"sender,omitzero"`
		Reason       string                     `json:"reason,omitzero"`
		Reference    string                     `json:"referenceId,omitzero"`
		Escalation   string                     `json:"escalationId,omitzero"`
		Code         session.Code               `json:"code,omitzero"`
		Times        int                        `json:"times,omitzero"`
		Details      object                     `json:"details,omitzero"`
	}
)

// schemaNames are those that are not the names of the types.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[envelope](): "Envelope", reflect.TypeFor[entry](): "Entry", reflect.TypeFor[api.TurnEntry](): "HistoryEntry",
	reflect.TypeFor[act](): "Act", reflect.TypeFor[answer](): "Answer", reflect.TypeFor[told](): "MonitorEvent",
	reflect.TypeFor[party](): "Party", reflect.TypeFor[recipient](): "Recipient", reflect.TypeFor[content](): "Content", reflect.TypeFor[constraints](): "Constraints",
	reflect.TypeFor[integrity](): "Integrity", reflect.TypeFor[sealed](): "EntryIntegrity", reflect.TypeFor[member](): "Joined", reflect.TypeFor[receipt](): "Receipt",
	reflect.TypeFor[struct{}](): "Nothing", reflect.TypeFor[performatives.Evidence](): "EvidenceFile",
}

func schemaName(t reflect.Type) string { return cmp.Or(schemaNames[t], t.Name()) }

// messages are unions by their performative: each has an act's body, typed.
var messages = map[string]string{
	"Envelope":     "one act as its sender sends it; unknown members are kept, signed and hashed",
	"Entry":        "an envelope as the broker accepted it, keeps it in the transcript, and delivers it",
	"HistoryEntry": "an Entry in short: from its sender, with its content's body, at its receipt's acceptedAt",
	"Move":         "an act that the caller may send now, with a body that is ready but for what fill names",
	"Say":          "an act of a hosted agent, without its envelope",
	"Act":          "an act of a hosted agent in the session of the path",
	"Answer":       "what a hosted agent answers a turn with",
}

// members are those that a type keeps as the text of JSON, by the name of their schema.
var members = map[string]map[string]string{
	"Snapshot":       {"news": "Entry"},
	"Messages":       {"messages": "Entry"},
	"InboxMessage":   {"envelope": "Entry"},
	"EscalationItem": {"transcript": "Entry"},
	"Evidence":       {"offer": "Entry", "commitment": "Entry", "acceptance": "Entry", "close": "Entry"},
	"Say":            {"recipient": "Recipient", "constraints": "Constraints"},
	"Error":          {"details": "Details"},
}

// free are the schemas of what is free in form, and of what types do not say.
func free() map[string]object {
	open := func(description string) object {
		return object{"type": "object", "additionalProperties": true, "description": description}
	}
	return map[string]object{
		"AnyValue":   {"title": "AnyValue", "description": "Any JSON value; whoever sends it decides its shape"},
		"OpenObject": open("Whoever sends it decides its members"),
		"Terms":      open("The terms of an offer; their members are the parties' to choose, or those of the terms schema that the offer names"),
		"Nothing":    {"type": "object", "additionalProperties": false, "properties": object{}, "description": "There are no members"},
		"Details": {"description": "Faults of a schema_invalid; of any other refusal, members by its code", "anyOf": []any{
			object{"type": "array", "items": refTo("Fault")}, refTo("DetailMembers"),
		}},
		"DetailMembers": {
			"type": "object", "additionalProperties": true, "description": "What a refusal says beside its sentence; which members there are depends on the code",
			"properties": object{
				"allowed":  object{"type": "array", "items": object{"type": "string"}, "description": "The acts that are allowed now"},
				"rule":     object{"type": "string"},
				"snapshot": refTo("Snapshot"),
			},
		},
		"RespondTurn": {"description": "A hosted principal answers in parts; any other sends the envelope that it has signed", "allOf": []any{
			object{"type": "object", "required": []any{"turnId"}, "properties": object{"turnId": object{"type": "string"}, "worker": object{"type": "string"}}},
			object{"anyOf": []any{refTo("Answer"), refTo("SignedAnswer")}},
		}},
		"SignedAnswer": {"type": "object", "required": []any{"envelope"}, "properties": object{"envelope": refTo("Envelope")}},
	}
}

// components makes the schemas: of the requests and replies of all verbs, and of what is sent beside them.
func components(at, dir string) (map[string]object, error) {
	r, err := wireReflector(at, dir)
	if err != nil {
		return nil, err
	}
	types := map[string]reflect.Type{}
	r.DoNotReference, r.ExpandedStruct = false, false
	r.Namer = func(t reflect.Type) string {
		name := schemaName(t)
		if t.Kind() != reflect.Struct {
			return name
		}
		if was, taken := types[name]; taken && was != t {
			panic(fmt.Sprintf("schemagen: %s and %s have one name", was, t)) // give one of them another in schemaNames
		}
		types[name] = t
		return name
	}
	all := free()
	if err := bodies(all, at, dir); err != nil {
		return nil, err
	}
	wire := []reflect.Type{
		reflect.TypeFor[envelope](), reflect.TypeFor[entry](), reflect.TypeFor[act](), reflect.TypeFor[answer](), reflect.TypeFor[told](), reflect.TypeFor[session.Fault](),
		reflect.TypeFor[api.ErrorReply](), reflect.TypeFor[api.ProveToken](), reflect.TypeFor[api.WakeupCall](), reflect.TypeFor[api.Asked](), reflect.TypeFor[api.DueNotice](),
	}
	for _, v := range api.Verbs() {
		wire = append(wire, v.Request, v.Reply)
	}
	for _, t := range wire {
		for name, definition := range r.ReflectFromType(t).Definitions {
			if all[name] != nil {
				continue
			}
			if all[name], err = plainSchema(definition); err != nil {
				return nil, err
			}
			typed(name, all[name])
		}
	}
	for name, about := range messages {
		union(all, name, about)
	}
	return all, nil
}

// bodies adds the schema of each act's body.
func bodies(all map[string]object, at, dir string) error {
	r, err := reflector(at, dir)
	if err != nil {
		return err
	}
	for _, act := range performatives.All() {
		t := reflect.TypeOf(performatives.NewBody(act)).Elem()
		s := r.Reflect(performatives.NewBody(act))
		s.Description = strings.ReplaceAll(s.Description, t.Name(), act.String())
		schema, err := plainSchema(s)
		if err != nil {
			return err
		}
		refer(schema, "")
		all[t.Name()] = schema
	}
	return nil
}

// typed has the members of a schema refer to what they are.
func typed(of string, schema object) {
	properties, _ := schema["properties"].(object)
	for name, is := range members[of] {
		if list, _ := properties[name].(object); list["items"] != nil {
			list["items"] = refTo(is)
		} else {
			properties[name] = refTo(is)
		}
	}
	refer(schema, "")
}

// refer has schemas refer to others by name, also to those of what is free in form. What generators of
// clients would take for a type is left out: the schemas of the bodies have it (PROTOCOL.md §4).
func refer(schema object, member string) {
	if to, is := schema["$ref"].(string); is {
		schema["$ref"] = strings.Replace(to, "#/$defs/", refs, 1)
		return
	}
	properties, has := schema["properties"].(object)
	kind, hasType := schema["type"]
	if has || hasType {
		for _, keyword := range []string{"anyOf", "oneOf", "if", "then", "else"} {
			delete(schema, keyword)
		}
	}
	for name, property := range properties {
		properties[name] = referred(property, name)
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if value, has := schema[keyword]; has && value != false {
			schema[keyword] = referred(value, cmp.Or(member, keyword))
		}
	}
	typed := has || hasType && kind != "object"
	for _, keyword := range []string{"additionalProperties", "enum", "const", "anyOf", "oneOf"} {
		typed = typed || schema[keyword] != nil
	}
	switch {
	case typed || member == "":
	case member == "terms":
		schema["$ref"] = refs + "Terms"
	case kind == "object":
		schema["$ref"] = refs + "OpenObject"
	default:
		schema["$ref"] = refs + "AnyValue"
	}
	if schema["$ref"] != nil {
		delete(schema, "type")
	}
}

// referred is the schema of a member, which true is, too.
func referred(value any, member string) object {
	schema, is := value.(object)
	if !is {
		schema = object{}
	}
	refer(schema, member)
	return schema
}

// union makes a schema one of thirteen, told apart by the performative.
func union(all map[string]object, name, about string) {
	base, one, mapping := all[name], []any{}, object{}
	for _, act := range performatives.All() {
		of := reflect.TypeOf(performatives.NewBody(act)).Elem().Name()
		variant, body := copied(base), refTo(of)
		if name == "Move" { // what fill names is still to come
			body = copied(all[of])
			delete(body, "required")
		}
		properties := variant["properties"].(object) //nolint:errcheck,forcetypeassert // a struct's
		properties["performative"] = object{"type": "string", "const": act.String()}
		if _, wrapped := properties["content"]; wrapped {
			content := copied(all["Content"])
			content["properties"].(object)["body"] = body //nolint:errcheck,forcetypeassert // likewise
			properties["content"] = content
		} else {
			properties["body"] = body
		}
		if name == "Act" || name == "Answer" {
			variant["additionalProperties"] = false // HTTP refuses others
		}
		variant["description"] = act.String() + ", " + about
		id := strings.TrimSuffix(of, "Body") + name
		all[id], mapping[act.String()] = variant, refs+id
		one = append(one, refTo(id))
	}
	all[name] = object{
		"description": strings.ToUpper(about[:1]) + about[1:], "oneOf": one,
		"discriminator": object{"propertyName": "performative", "mapping": mapping},
	}
}

func copied(schema object) object {
	raw, err := json.Marshal(schema)
	twin := object{}
	if err == nil {
		err = json.Unmarshal(raw, &twin)
	}
	if err != nil {
		panic(err) // it was read from JSON
	}
	return twin
}
