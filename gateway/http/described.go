package httpgateway

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// refTo refers to a schema by its name.
func refTo(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// oneOf is one of several schemas, told apart by the value of a member.
func oneOf(member, description string, names map[string]string) object {
	all, mapping := []object{}, object{}
	for _, value := range slices.Sorted(maps.Keys(names)) {
		all, mapping[value] = append(all, refTo(names[value])), "#/components/schemas/"+names[value]
	}
	return object{"oneOf": all, "discriminator": object{"propertyName": member, "mapping": mapping}, "description": description}
}

// sent is an object with all of these members.
func sent(properties object) object {
	return object{"type": "object", "required": slices.Sorted(maps.Keys(properties)), "properties": properties}
}

// inJSON is the text of a value.
func inJSON(name string) object {
	return object{"type": "string", "contentMediaType": jsonType, "contentSchema": refTo(name)}
}

func constant(value string) object { return object{"type": "string", "const": value} }

var textual, moment, number = object{"type": "string"}, object{"type": "string", "format": "date-time"}, object{"type": "integer"}

// own are the schemas of what only HTTP has.
func own() map[string]object {
	closed := func(required []string, properties object) object {
		return object{"type": "object", "required": required, "properties": properties, "additionalProperties": false}
	}
	having := func(required []string, properties object) object {
		return object{"type": "object", "required": required, "properties": properties}
	}
	frame := func(kind string, properties object) object {
		properties["type"] = constant(kind)
		return sent(properties)
	}
	state := func() object { return object{"state": textual, "previous": textual, "timestamp": moment} }
	return map[string]object{
		"Problem": having([]string{"type", "title", "status", "detail", "code", "category", "retryable"}, object{
			"type": object{"type": "string", "format": "uri"}, "title": textual, "status": number, "detail": textual, "code": object{"type": "string", "enum": codes()},
			"category": textual, "retryable": object{"type": "boolean"}, "details": refTo("Details"),
		}),
		"About": having([]string{"name", "version", "protocols", "contract", "format", "broker", "now"}, object{
			"name": textual, "version": textual, "protocols": object{"type": "array", "items": textual}, "contract": number, "format": number,
			"broker": textual, "now": moment, "dev": object{"type": "boolean"},
		}),
		"Opening": closed([]string{"with", "purpose"}, object{
			"with": object{"type": "array", "items": textual, "minItems": 1}, "purpose": textual, "subject": textual, "mode": textual,
			"terms": refTo("OpenObject"), "validUntil": moment,
		}),
		"SessionState":      sent(state()),
		"MessageEvent":      sent(object{"event": constant("message"), "id": textual, "data": inJSON("Entry")}),
		"SessionStateEvent": sent(object{"event": constant("session_state"), "data": inJSON("SessionState")}),
		"ServerEvent": oneOf("event", "an event of a stream (SSE); data is the text of JSON, id resumes the stream",
			map[string]string{"message": "MessageEvent", "session_state": "SessionStateEvent"}),

		"AuthFrame": closed([]string{"type", "token"}, object{"type": constant("auth"), "token": textual, "lastSequence": number}),
		"SendFrame": object{
			"type": "object", "required": []string{"type"}, "description": "an envelope, or the members of an Act",
			"properties": object{
				"type": constant("send"), "envelope": refTo("Envelope"), "performative": object{"type": "string", "enum": performatives.All()}, "body": refTo("OpenObject"),
				"recipient": refTo("Recipient"), "constraints": refTo("Constraints"), "open": object{"type": "boolean"}, "messageId": textual,
			},
		},
		"PongFrame":   frame("pong", object{}),
		"ClientFrame": oneOf("type", "what a client sends over the WebSocket", map[string]string{"auth": "AuthFrame", "send": "SendFrame", "pong": "PongFrame"}),
		"AuthOkFrame": frame("auth_ok", object{
			"sessionId": textual, "state": textual, "participants": object{"type": "array", "items": refTo("PartyView")},
			"lastSequence": object{"type": []string{"integer", "null"}},
		}),
		"MessageFrame":      frame("message", object{"envelope": refTo("Entry")}),
		"SessionStateFrame": frame("session_state", state()),
		"AckFrame":          frame("ack", object{"messageId": textual, "sequenceNumber": number}),
		"HeartbeatFrame":    frame("heartbeat", object{"timestamp": moment, "state": textual}),
		"ErrorFrame":        having([]string{"type", "code", "message"}, object{"type": constant("error"), "code": textual, "message": textual, "messageId": textual}),
		"ServerFrame": oneOf("type", "what the server sends over the WebSocket", map[string]string{
			"auth_ok": "AuthOkFrame", "message": "MessageFrame", "session_state": "SessionStateFrame", "ack": "AckFrame", "heartbeat": "HeartbeatFrame", "error": "ErrorFrame",
		}),
	}
}

// wire are the schemas of everything on the wire.
var wire = sync.OnceValue(func() map[string]object {
	all := map[string]object{}
	if err := json.Unmarshal(schemas.Components(), &all); err != nil {
		panic(err) // a test has read it
	}
	card := object{"type": "object", "description": "what a principal says of itself; the registry's own members are ignored", "properties": all["Card"]["properties"]}
	all["CardInput"] = card
	all["ProveToken"]["additionalProperties"] = false
	maps.Copy(all, own())
	return all
})

// components are the schemas that the paths refer to, and those of the WebSocket.
func components(of any) map[string]object {
	used := map[string]object{}
	var follow func(any)
	follow = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if to, is := value["$ref"].(string); is {
				name := strings.TrimPrefix(to, "#/components/schemas/")
				if used[name] == nil {
					used[name] = wire()[name]
					follow(used[name])
				}
			}
			for _, inner := range value {
				follow(inner)
			}
		case object:
			follow(map[string]any(value))
		case map[string]object:
			for _, inner := range value {
				follow(inner)
			}
		case []object:
			for _, inner := range value {
				follow(inner)
			}
		case []any:
			for _, inner := range value {
				follow(inner)
			}
		}
	}
	follow(of)
	follow(refTo("ClientFrame"))
	follow(refTo("ServerFrame"))
	return used
}

// schemaOf is the schema of a request or a reply.
func schemaOf(t reflect.Type) object { return refTo(t.Name()) }
