package httpgateway

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// An object is a part of the description.
type object map[string]any

// describe serves the OpenAPI description.
func (g *Gateway) describe(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, jsonType, description())
}

// description is made of the table that serves.
var description = sync.OnceValue(func() []byte {
	paths := map[string]object{}
	for _, r := range routes() {
		path := r.at.Path()
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(r.at.Method())] = r.operation()
	}
	data, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "parley: Agent Session Protocol over HTTP", "version": api.Version,
			"description": "Sessions in which agents negotiate (npayload's Agent Session Protocol, " + performatives.Version + ").",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []object{{"url": "/"}},
		"security": []object{{"token": []string{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "parley token add, or POST " + api.ProveEndpoint.Path()}},
			"schemas":         components(),
		},
	}, json.Deterministic(true))
	if err != nil {
		panic(err) // of a table that never changes
	}
	return data
})

// replies are the contract schemas of what verbs answer.
var replies = map[reflect.Type]string{
	reflect.TypeFor[api.Acceptance](): "acceptance", reflect.TypeFor[api.SessionView](): "session-view", reflect.TypeFor[api.Sessions](): "session-list", reflect.TypeFor[api.Snapshot](): "session-snapshot",
	reflect.TypeFor[api.Card](): "agent-card", reflect.TypeFor[api.CaseLog](): "case-log",
	reflect.TypeFor[api.EscalationItem](): "escalation-item", reflect.TypeFor[api.Escalations](): "escalation-list",
}

// pages are replies that are lists of a contract schema.
var pages = map[reflect.Type]object{
	reflect.TypeFor[api.Messages](): page("messages", "entry", "integer"), reflect.TypeFor[api.Agents](): page("agents", "agent-card", "string"),
}

// page is a list under a name, and what the next page is asked for by.
func page(name, item, next string) object {
	return object{
		"type": "object", "required": []string{name},
		"properties": object{name: object{"type": "array", "items": object{"$ref": "#/components/schemas/" + item}}, "next": object{"type": next}},
	}
}

// components are the schemas that operations refer to.
func components() object {
	var refusal struct {
		Properties struct {
			Error struct{ Properties, If, Then, Else object }
		}
	}
	text, _ := schemas.Get("refusal")
	if err := json.Unmarshal(text, &refusal, json.MatchCaseInsensitiveNames(true)); err != nil {
		panic(err) // a test has read every schema
	}
	refused := refusal.Properties.Error
	all := object{
		"problem": object{
			"type": "object", "required": []string{"type", "title", "status", "detail", "code", "category", "retryable"},
			"properties": object{
				"type": object{"type": "string", "format": "uri"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
				"detail": object{"type": "string"}, "code": object{"enum": codes()}, "category": object{"type": "string"},
				"retryable": object{"type": "boolean"}, "details": refused.Properties["details"],
			},
			"if": refused.If, "then": refused.Then, "else": refused.Else,
		},
		"act": object{
			"type": "object", "required": []string{"performative", "body"}, "additionalProperties": false,
			"properties": object{
				"performative": object{"enum": performatives.All()}, "body": object{"type": "object"},
				"recipient": object{"type": []string{"string", "object"}}, "constraints": object{"type": "object"}, "open": object{"type": "boolean", "description": "the other sides read what is usually sealed, too"}, "messageId": object{"type": "string", "format": "uuid", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
			},
		},
		"opening": object{
			"type": "object", "required": []string{"with", "purpose"}, "additionalProperties": false,
			"properties": object{
				"with": object{"type": "array", "items": object{"type": "string"}, "minItems": 1}, "purpose": object{"type": "string"},
				"subject": object{"type": "string"}, "mode": object{"type": "string"}, "terms": object{"type": "object"},
				"validUntil": object{"type": "string", "format": "date-time"},
			},
		},
		"proof": object{
			"type": "object", "required": []string{"agentId", "timestamp", "audience", "signature"}, "additionalProperties": false,
			"properties": object{
				"agentId": object{"type": "string"}, "timestamp": object{"type": "string", "format": "date-time"},
				"audience": object{"type": "string"}, "signature": object{"type": "string"},
			},
		},
		"token": object{
			"type": "object", "required": []string{"id", "agentId", "createdAt", "expiresAt", "token"},
			"properties": object{
				"id": object{"type": "string"}, "agentId": object{"type": "string"}, "token": object{"type": "string"},
				"createdAt": object{"type": "string", "format": "date-time"}, "expiresAt": object{"type": "string", "format": "date-time"},
			},
		},
	}
	for _, name := range append(slices.Sorted(maps.Values(replies)), "entry", "envelope") {
		all[name] = contract(name)
	}
	all["close"] = contract(performatives.Close.String())
	return all
}

// contract is a published schema, without what it is called elsewhere.
func contract(name string) object {
	text, _ := schemas.Get(name)
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		panic(err) // a test has read every schema
	}
	delete(schema, "$id")
	delete(schema, "$schema")
	spell(schema)
	return schema
}

// spell writes {} for the schema true, which not every generator of clients reads.
func spell(schema map[string]any) {
	for keyword, value := range schema {
		switch value := value.(type) {
		case bool:
			if value && !slices.Contains([]string{"additionalProperties", "uniqueItems", "const", "default"}, keyword) {
				schema[keyword] = object{}
			}
		case map[string]any:
			spell(value)
		case []any:
			for _, v := range value {
				if inner, is := v.(map[string]any); is {
					spell(inner)
				}
			}
		}
	}
}

func codes() []session.Code {
	all := session.Codes()
	slices.Sort(all)
	return all
}

func (r *route) operation() object {
	name := strings.NewReplacer("{", "", "}", "", "/", "_").Replace(strings.TrimPrefix(r.at.Path(), api.HTTPBase+"/"))
	o := object{"operationId": strings.ToLower(r.at.Method()) + "_" + name, "summary": r.doc, "responses": r.responses()}
	if r.public {
		o["security"] = []object{}
	}
	var parameters []object
	for _, p := range r.at.Members() {
		parameters = append(parameters, object{"name": p, "in": "path", "required": true, "schema": object{"type": "string", "minLength": 1}})
	}
	for _, p := range r.parameters() {
		parameters = append(parameters, object{"name": p.name, "in": "query", "schema": p.schema()})
	}
	if r.body == actBody || r.body == openBody || r.body == closeBody {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "minLength": 1, "maxLength": gateway.MaxKey, "pattern": "^[!-~]+$"},
			"description": "the same key and content again gets the first acceptance, for a day at least",
		})
	}
	if r.body == actBody {
		parameters = append(parameters, object{
			"name": "If-Match", "in": "header", "schema": object{"type": "string", "pattern": `^(\*|(W/)?"[^"]*")$`},
			"description": "the ETag of the snapshot on which the act was decided: it is refused with 412, and the new snapshot, if the session has gone on",
		})
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if body := r.requestBody(); body != nil {
		o["requestBody"] = body
	}
	return o
}

func (r *route) requestBody() object {
	ref := func(name string) object { return object{"schema": object{"$ref": "#/components/schemas/" + name}} }
	content := func(required bool, types object) object { return object{"required": required, "content": types} }
	switch r.body {
	case verbBody:
		return content(false, object{jsonType: object{"schema": r.members()}})
	case turnBody:
		return content(true, object{jsonType: object{"schema": r.members()}, envelopeType: ref("envelope")})
	case actBody:
		return content(true, object{jsonType: ref("act"), envelopeType: ref("envelope")})
	case openBody:
		return content(true, object{jsonType: ref("opening"), envelopeType: ref("envelope")})
	case closeBody:
		return content(false, object{jsonType: ref("close")})
	case cardBody:
		return content(true, object{jsonType: object{"schema": object{"type": "object"}}})
	case proofBody:
		return content(true, object{jsonType: ref("proof")})
	default:
		return nil
	}
}

// members is the schema of the verb's request without what is in the path.
func (r *route) members() object {
	properties := object{}
	inPath := r.at.Members()
	other := route{verb: r.verb}
	for _, p := range other.parameters() {
		if !slices.Contains(inPath, p.member) && p.member != workerMember && p.member != envelopeMember {
			schema := p.schema()
			if one, typed := schema["type"]; typed {
				schema["type"] = []any{one, "null"} // as if it were not there
				delete(schema, "maximum")           // any integer that survives a double is read
			}
			properties[p.member] = schema
		}
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

// responses are all answers of a route: what it is for, and problems.
func (r *route) responses() object {
	success := r.success
	if success == 0 {
		success = http.StatusOK
	}
	schema := object{"type": "object"}
	name := replies[r.verb.Reply]
	switch {
	case r.body == actBody || r.body == openBody || r.body == closeBody:
		name = "acceptance"
	case r.body == proofBody:
		name = "token"
	case slices.Contains(r.at.Members(), "messageId"):
		name = "entry"
	case pages[r.verb.Reply] != nil:
		schema = pages[r.verb.Reply]
	}
	if name != "" {
		schema = object{"$ref": "#/components/schemas/" + name}
	}
	ok := object{"description": r.doc, "content": object{jsonType: object{"schema": schema}}}
	if r.body == openBody {
		ok["headers"] = object{"Location": object{"schema": object{"type": "string"}}}
	}
	all := object{strconv.Itoa(success): ok}
	if r.resumes != "" {
		ok["content"] = object{eventsType: object{}} // JSON Schema says nothing of events
	}
	if r.empty != "" {
		all[strconv.Itoa(http.StatusNoContent)] = object{"description": r.empty}
	}
	problem := object{problemType: object{"schema": object{"$ref": "#/components/schemas/problem"}}}
	if success == http.StatusSwitchingProtocols {
		delete(ok, "content")
	}
	for _, status := range r.problems() {
		all[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": problem}
	}
	return all
}

// problems are the statuses of refusals: those of the protocol, and HTTP's own.
func (r *route) problems() (all []int) {
	for _, c := range session.Codes() {
		all = append(all, c.Status())
	}
	all = append(all, http.StatusMethodNotAllowed)
	if r.success == http.StatusSwitchingProtocols {
		all = append(all, http.StatusUpgradeRequired)
	}
	if r.body == actBody {
		all = append(all, http.StatusPreconditionFailed)
	}
	if r.body != noBody {
		all = append(all, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)
	}
	return all
}
