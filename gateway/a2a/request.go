package a2agateway

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// oldMethod reports whether a JSON-RPC request is one of 0.3, whose methods are called
// message/send and the like.
func oldMethod(body []byte) bool {
	var request struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(body, &request) == nil && strings.Contains(request.Method, "/")
}

// camelParams is a JSON-RPC request whose params have their names in camelCase. Readers of
// protobuf's JSON take the names of the definition, too, and some clients send those.
func camelParams(body []byte) []byte {
	var request, params map[string]jsontext.Value
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["params"], &params) != nil {
		return body
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(params)), func(name string) bool { return strings.Contains(name, "_") }) {
		return body
	}
	renamed := map[string]jsontext.Value{}
	for name, value := range params {
		words := strings.Split(name, "_")
		for i, word := range words[1:] {
			if word != "" {
				words[i+1] = strings.ToUpper(word[:1]) + word[1:]
			}
		}
		camel := strings.Join(words, "")
		if _, twice := renamed[camel]; twice {
			return body
		}
		renamed[camel] = value
	}
	var err error
	if request["params"], err = json.Marshal(renamed, json.Deterministic(true)); err != nil {
		return body
	}
	if written, err := json.Marshal(request, json.Deterministic(true)); err == nil {
		return written
	}
	return body
}

// checkData refuses data parts of a message that are no I-JSON, such as with a number that does not survive
// a double: the library would read another one, which would then be signed. What it cannot read is left to it.
func checkData(body []byte, rpc bool) error {
	type message struct {
		Message struct {
			Parts []struct {
				Data jsontext.Value `json:"data"`
			} `json:"parts"`
		} `json:"message"`
	}
	var request struct {
		message
		Params message `json:"params"`
	}
	err := json.Unmarshal(body, &request, json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil //nolint:nilerr // the library refuses it
	}
	said, at := request.Message, "/message"
	if rpc {
		said, at = request.Params.Message, "/params/message"
	}
	for i, part := range said.Parts {
		if len(part.Data) == 0 {
			continue
		}
		_, err := performatives.Canonical(part.Data)
		if wrong, is := errors.AsType[*performatives.Malformed](err); is {
			err = &performatives.Malformed{Path: fmt.Sprintf("%s/parts/%d/data%s", at, i, wrong.Path), Why: wrong.Why}
		}
		if err != nil {
			return session.RefuseUnreadable(err)
		}
	}
	return nil
}

// isJSON reports whether a media type is one of JSON, or missing.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (kind == jsonType || strings.HasSuffix(kind, "+json"))
}

// A mistake is one of a request as a whole.
type mistake struct {
	code, status      int // of JSON-RPC, and of REST
	name, reason, why string
}

var (
	wrongVersion = mistake{-32009, http.StatusBadRequest, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED", "A2A-Version is 1.0, or 0.3 of JSON-RPC"}
	wrongType    = mistake{-32005, http.StatusUnsupportedMediaType, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", "Content-Type is " + jsonType}
)

// answer refuses the request.
func (m mistake) answer(rpc bool, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		info := []any{object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": m.reason, "domain": a2a.ProtocolDomain}}
		if rpc {
			var asked struct {
				ID jsontext.Value `json:"id"`
			}
			if err := json.Unmarshal(body, &asked); err != nil || asked.ID.Kind() != '"' && asked.ID.Kind() != '0' {
				asked.ID = jsontext.Value("null")
			}
			write(w, http.StatusOK, object{"jsonrpc": "2.0", "id": asked.ID, "error": object{"code": m.code, "message": m.why, "data": info}})
			return
		}
		write(w, m.status, object{"error": object{"code": m.status, "status": m.name, "message": m.why, "details": info}})
	})
}
