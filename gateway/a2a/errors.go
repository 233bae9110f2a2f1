package a2agateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// kinds are the errors of A2A that refusals are; what is not here is the caller's to change.
var kinds = map[session.Code]error{
	session.MalformedEnvelope: a2a.ErrInvalidParams, session.VersionUnsupported: a2a.ErrInvalidParams, session.UnknownPerformative: a2a.ErrInvalidParams,
	session.StaleTimestamp: a2a.ErrInvalidParams, session.SchemaInvalid: a2a.ErrInvalidParams, session.SchemaUnsupported: a2a.ErrInvalidParams,
	session.TooLarge: a2a.ErrInvalidParams, session.UnknownAgent: a2a.ErrInvalidParams, session.SignatureInvalid: a2a.ErrInvalidParams,
	session.UnknownSession: a2a.ErrTaskNotFound,
	session.Unauthorized:   a2a.ErrUnauthorized, session.AuthorityExceeded: a2a.ErrUnauthorized, session.OwnProposal: a2a.ErrUnauthorized,
	session.InsufficientTrust: a2a.ErrUnauthorized,
	session.RateLimited:       a2a.ErrServerError, session.Unavailable: a2a.ErrServerError,
}

// refusal is an error as A2A has it: a refusal's sentence and code, so that a model can act on
// it.
func (g *Gateway) refusal(err error) error {
	if err == nil {
		return nil
	}
	if own, is := errors.AsType[*a2a.Error](err); is {
		return own
	}
	refusal := g.o.Service.Refusal(err)
	kind, known := kinds[refusal.Code]
	if !known {
		kind = a2a.ErrUnsupportedOperation
	}
	e := api.Refused(refusal).Error
	if kind == a2a.ErrTaskNotFound { //nolint:errorlint // a value of the table
		return a2a.NewError(kind, kind.Error())
	}
	details := map[string]any{"code": string(e.Code), "category": string(e.Category), "retryable": e.Retryable}
	var more any
	if len(e.Details) > 0 && json.Unmarshal(e.Details, &more) == nil {
		details["details"] = more
	}
	return a2a.NewError(kind, e.Message).WithDetails(details).
		WithErrorInfoMeta(map[string]string{"code": string(e.Code), "retryable": strconv.FormatBool(e.Retryable)})
}

// noTask is the error of a task that there is not, or that is another's.
func noTask() error { return a2a.NewError(a2a.ErrTaskNotFound, a2a.ErrTaskNotFound.Error()) }

func invalid(format string, args ...any) error {
	return a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf(format, args...))
}

// fail answers what does not reach the library, in the shape of REST's errors.
func fail(w http.ResponseWriter, status int, name, message string) {
	type inner struct {
		Code    int    `json:"code"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	write(w, status, map[string]any{"error": inner{status, name, message}})
}

func write(w http.ResponseWriter, status int, reply any) {
	data, err := json.Marshal(reply, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":500,"status":"INTERNAL","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
