package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// HTTPBase is what all paths of HTTP begin with.
const HTTPBase = "/v1/asp"

// An Endpoint is a method and a path of HTTP, below HTTPBase, as in "GET /sessions/{sessionId}": what is in
// braces is a member of a verb's request.
type Endpoint string

// What HTTP has beside the verbs.
const (
	AboutEndpoint         Endpoint = "GET "
	ProveEndpoint         Endpoint = "POST /token"
	OpenEndpoint          Endpoint = "POST /sessions"
	CloseEndpoint         Endpoint = "DELETE /sessions/{sessionId}"
	SubmitEndpoint        Endpoint = "POST /sessions/{sessionId}/messages"
	MessageEndpoint       Endpoint = "GET /sessions/{sessionId}/messages/{messageId}"
	SessionEventsEndpoint Endpoint = "GET /sessions/{sessionId}/events"
	SocketEndpoint        Endpoint = "GET /sessions/{sessionId}/ws"
	InboxEventsEndpoint   Endpoint = "GET /inbox/events"
	WakeupEndpoint        Endpoint = "PUT /wakeup" // wakeup.set for all sessions
)

// A Query is a parameter of a query that is not called as the member of the request that it is.
type Query struct{ Parameter, Member string }

// Method is the endpoint's method.
func (e Endpoint) Method() string {
	method, _, _ := strings.Cut(string(e), " ")
	return method
}

// Path is the endpoint's path from the root.
func (e Endpoint) Path() string {
	_, path, _ := strings.Cut(string(e), " ")
	return HTTPBase + path
}

// Members are those in the path.
func (e Endpoint) Members() (names []string) {
	for part := range strings.SplitSeq(e.Path(), "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// At is the path with these values of its members, in their order.
func (e Endpoint) At(values ...string) string {
	path := e.Path()
	for i, name := range e.Members() {
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(values[i]), 1)
	}
	return path
}

// OverHTTP is a request of a verb that HTTP has: where it goes, and the body of what is no GET.
func (v Verb) OverHTTP(request []byte) (target string, body []byte, err error) {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(request, &members); err != nil {
		return "", nil, err
	}
	if v.Body != "" {
		whole := members[v.Body]
		members = nil
		if err := json.Unmarshal(whole, &members); err != nil {
			return "", nil, err
		}
	}
	var inPath []string
	for _, name := range v.HTTP.Members() {
		var value string
		if json.Unmarshal(members[name], &value) != nil || value == "" {
			return "", nil, fmt.Errorf("%s over HTTP needs %s", v.Name, name)
		}
		inPath = append(inPath, value)
		delete(members, name)
	}
	target = v.HTTP.At(inPath...)
	if v.HTTP.Method() != "GET" {
		body, err = json.Marshal(members, json.Deterministic(true))
		return target, body, err
	}
	query := url.Values{}
	for name, raw := range members {
		if query[v.parameter(name)], err = texts(raw); err != nil {
			return "", nil, err
		}
	}
	return target + "?" + query.Encode(), nil, nil
}

// parameter is what a query calls a member.
func (v Verb) parameter(member string) string {
	if i := slices.IndexFunc(v.Query, func(q Query) bool { return q.Member == member }); i >= 0 {
		return v.Query[i].Parameter
	}
	return member
}

// texts are the values of a parameter: the texts of a list, or one.
func texts(raw jsontext.Value) (values []string, err error) {
	switch raw.Kind() {
	case '[':
		err = json.Unmarshal(raw, &values)
	case '"':
		values = []string{""}
		err = json.Unmarshal(raw, &values[0])
	default:
		values = []string{string(raw)}
	}
	return values, err
}
