package httpgateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An object is a part of the description.
type object map[string]any

// describe serves the OpenAPI description.
func (g *Gateway) describe(w http.ResponseWriter, r *http.Request) {
	if err := g.anonymous(r); err != nil {
		(&call{g: g, w: w, r: r}).refuse(err)
		return
	}
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
	webhooks := map[string]object{"wakeup": {"post": object{
		"operationId": "wakeup", "summary": "what a wakeup calls (Standard Webhooks)",
		"requestBody": object{"required": true, "content": object{jsonType: object{"schema": refTo("WakeupCall")}}},
		"responses":   object{"2XX": object{"description": "it is not called again for this entry"}},
	}}}
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
		"webhooks": webhooks,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "parley token add, or POST " + api.ProveEndpoint.Path()}},
			"schemas":         components([]any{paths, webhooks}),
		},
	}, json.Deterministic(true))
	if err != nil {
		panic(err) // of a table that never changes
	}
	return data
})

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
	if r.takesHead() {
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
	ref := func(name string) object { return object{"schema": refTo(name)} }
	content := func(required bool, types object) object { return object{"required": required, "content": types} }
	switch r.body {
	case verbBody:
		return content(false, object{jsonType: object{"schema": r.members()}})
	case turnBody:
		return content(true, object{jsonType: ref("Answer"), envelopeType: ref("Envelope")})
	case actBody:
		return content(true, object{jsonType: ref("Act"), envelopeType: ref("Envelope")})
	case openBody:
		return content(true, object{jsonType: ref("Opening"), envelopeType: ref("Envelope")})
	case closeBody:
		return content(false, object{jsonType: ref("CloseBody")})
	case cardBody:
		return content(true, object{jsonType: ref("CardInput")})
	case proofBody:
		return content(true, object{jsonType: ref("ProveToken")})
	default:
		return nil
	}
}

// members is the schema of the verb's request without what is in the path.
func (r *route) members() object {
	properties := object{}
	inPath := r.at.Members()
	other := route{verb: r.verb}
	request, _ := wire()[r.verb.Request.Name()]["properties"].(map[string]any)
	for _, p := range other.parameters() {
		if !slices.Contains(inPath, p.member) && p.member != workerMember && p.member != envelopeMember {
			schema := p.schema()
			if named, has := request[p.member].(map[string]any); has && !p.simple() {
				schema = object{"anyOf": []any{named, object{"type": "null"}}}
			} else if one, typed := schema["type"]; typed {
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
	var schema object
	switch {
	case r.body == actBody || r.body == openBody || r.body == closeBody:
		schema = refTo("Acceptance")
	case r.body == proofBody:
		schema = refTo("Token")
	case r.at == api.AboutEndpoint:
		schema = refTo("About")
	case slices.Contains(r.at.Members(), "messageId"):
		schema = refTo("Entry")
	case r.verb.Reply != nil:
		schema = schemaOf(r.verb.Reply)
	}
	ok := object{"description": r.doc, "content": object{jsonType: object{"schema": schema}}}
	if r.body == openBody {
		ok["headers"] = object{"Location": object{"schema": object{"type": "string"}}}
	}
	all := object{strconv.Itoa(success): ok}
	if r.resumes != "" {
		ok["content"] = object{eventsType: object{"schema": refTo("ServerEvent")}}
	}
	if r.empty != "" {
		all[strconv.Itoa(http.StatusNoContent)] = object{"description": r.empty}
	}
	problem := object{problemType: object{"schema": refTo("Problem")}}
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
	if r.takesHead() {
		all = append(all, http.StatusPreconditionFailed)
	}
	if r.body != noBody {
		all = append(all, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)
	}
	return all
}
