package httpgateway

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/session"
)

// A Problem is a refusal as HTTP has it (RFC 9457).
type Problem struct {
	Type      string           `json:"type"` // urn:asp:error:<code>
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail"`
	Code      session.Code     `json:"code"`
	Category  session.Category `json:"category"`
	Retryable bool             `json:"retryable"`
	Details   jsontext.Value   `json:"details,omitzero"`
}

const (
	problemType = "application/problem+json"
	jsonType    = "application/json"
)

// refuse answers with a refusal.
func (c *call) refuse(err error) {
	refusal := c.g.service.Refusal(err)
	code := refusal.Code.Status()
	if refusal == custody.ErrToken {
		code = http.StatusUnauthorized
	}
	if own, is := errors.AsType[status](err); is {
		code = own.code
	}
	fail(c.w, code, refusal)
}

// Refuse answers a request that did not reach a gateway.
func Refuse(w http.ResponseWriter, refusal *session.Refusal) {
	fail(w, refusal.Code.Status(), refusal)
}

// fail writes a problem document.
func fail(w http.ResponseWriter, status int, refusal *session.Refusal) {
	e := api.Refused(refusal).Error
	h := w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="asp"`)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", gateway.RetryAfter(refusal))
	}
	data, err := json.Marshal(Problem{
		Type: "urn:asp:error:" + string(e.Code), Title: strings.ReplaceAll(string(e.Code), "_", " "), Status: status,
		Detail: e.Message, Code: e.Code, Category: e.Category, Retryable: e.Retryable, Details: e.Details,
	}, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, nil
	}
	write(w, status, problemType, data)
}

func write(w http.ResponseWriter, status int, contentType string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", cmp.Or(contentType, jsonType))
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
