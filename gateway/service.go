// Package gateway is what every gateway needs of a broker, once: it finds the caller of a
// request, and for the caller it calls verbs, says acts and follows sessions.
//
//	caller, err := service.Admit(ctx, bearer)
//	err = caller.Call(ctx, api.SessionGet.Verb, api.GetSession{Session: id}, &view)
//	accepted, err := caller.Say(ctx, api.Say{Session: id, Performative: "ACCEPT", Body: body})
//	feed, err := caller.Follow(ctx, id, 0)
//
// A gateway decodes requests, encodes answers, and has a table of refusals. No rule of the
// protocol lives in one. These hold for all of them:
//   - A caller's requests go to the brokers on its own subjects, so the limits and checks are
//     those of NATS, and the broker that owns the session answers.
//   - What a caller does ends when its token expires or is removed (Until).
//   - A token that is read-only says and submits nothing.
//   - What is written to a caller, and buffered for it, is charged to it (MeteredHTTP).
//   - Large requests are worked on in slots, which callers have in turns (ReadBody).
package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Service is a broker as its gateways see it.
type Service struct {
	// CallAs calls a verb, and SubmitAs submits an envelope, for a principal that a gateway has
	// authenticated. Refusals are *session.Refusal.
	CallAs   func(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	SubmitAs func(ctx context.Context, as performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// Charge charges requests that go to no broker as ones that do. Of no requests, it refuses who
	// owes something. Nil charges nothing.
	Charge func(as performatives.Agent, requests int) error
	// Fits refuses an act that no session would take now, by its body alone.
	Fits func(p performatives.Performative, body jsontext.Value) error
	// Before finds the session in which a hosted agent's act was accepted under a key before.
	// One that was asked for by another request than that of the digest is refused.
	Before func(ctx context.Context, as performatives.Agent, key string, asked performatives.Hash) (id performatives.SessionID, message performatives.MessageID, accepted bool, err error)

	// Tokens finds whom a bearer token lets in, or returns custody.ErrToken.
	Tokens  func(ctx context.Context, bearer string) (custody.Pass, error)
	Custody *custody.Custody

	// WatchSession and WatchInbox tell of what is stored, after it is. Seen notes that a
	// principal holds a stream open.
	WatchSession func(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error)
	WatchInbox   func(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error)
	Seen         func(a performatives.Agent)
	Accounts     *limits.Accounts // of callers; nil has none

	// Ending ends when the broker begins to stop: nobody waits for a turn from then on. Nil never does.
	Ending context.Context //nolint:containedctx // of no request

	Dev bool // no logins: loopback names only, and a URI is its own token
	Now func() time.Time
	Log *zap.Logger
}

// Admit finds the caller whom a bearer token lets in, or returns custody.ErrToken. It refuses whoever
// owes something, before the request is read, and charges the request to the caller.
func (s *Service) Admit(ctx context.Context, bearer string) (Caller, error) {
	pass, err := s.Tokens(ctx, bearer)
	c := Caller{pass, s}
	if err != nil {
		return c, err
	}
	return c, c.Metered(ctx)
}

// AdmitHTTP finds the caller of a request by its one Authorization header.
func (s *Service) AdmitHTTP(r *http.Request) (Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return Caller{}, custody.ErrToken
	}
	c, err := s.Admit(r.Context(), custody.Bearer(given[0]))
	if meant := r.Header.Get(api.AgentHeader); err == nil && meant != "" && meant != string(c.Agent) {
		err = session.Refuse(session.Unauthorized, "the token is of %s, not of %.200s", c.Agent, meant)
	}
	return c, err
}

// As is a caller whom the gateway speaks for without a request, such as an agent elsewhere.
func (s *Service) As(a performatives.Agent) Caller { return Caller{custody.Pass{Agent: a}, s} }

// Refusal is what an error is to a client. What is no refusal is an internal cause: it is
// logged, and the client learns only that the broker cannot answer now.
func (s *Service) Refusal(err error) *session.Refusal {
	refusal, is := errors.AsType[*session.Refusal](err)
	if !is {
		s.Fault("gateway", err)
		refusal = session.Busy()
	}
	return refusal
}

// Fault logs the internal cause of an answer. A client that hung up, or that did not wait, is no fault.
func (s *Service) Fault(of string, err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case errors.Is(err, context.DeadlineExceeded):
		s.Log.Debug(of, zap.Error(err))
	default:
		s.Log.Error(of, zap.Error(err))
	}
}

// Passing reports whether an error is a refusal that passes: what is asked again may be answered.
func Passing(err error) bool {
	refusal, is := errors.AsType[*session.Refusal](err)
	return is && (refusal.Code == session.Unavailable || refusal.Code == session.RateLimited)
}

// RetryAfter is the value of the header that says in how many seconds to ask again.
func RetryAfter(refusal *session.Refusal) string {
	limited, is := refusal.Details.(api.Limited)
	if raw, sent := refusal.Details.(jsontext.Value); sent { // over NATS
		is = json.Unmarshal(raw, &limited) == nil
	}
	if !is {
		return "1"
	}
	return strconv.FormatInt(max(1, (limited.RetryAfter+999)/1000), 10)
}

// retryWait is between two attempts while a broker cannot answer.
const retryWait = 250 * time.Millisecond

// Retry asks until the answer is no refusal that passes, or the context ends.
func Retry(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !Passing(err) || background.Pause(ctx, retryWait) != nil {
			return err
		}
	}
}

// MaxKey is the length of a key that a client gives.
const MaxKey = 255

// KeyIn is what an HTTP request is retried by: its Idempotency-Key, "" for none.
func KeyIn(h http.Header) (string, error) {
	given := h.Values("Idempotency-Key")
	const path = "/Idempotency-Key"
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1:
		return "", session.Refuse(session.MalformedEnvelope, "%s: is there more than once", path).With(map[string]string{"path": path})
	case given[0] == "" || len(given[0]) > MaxKey || strings.ContainsFunc(given[0], func(c rune) bool { return c < '!' || c > '~' }):
		return "", session.Refuse(session.MalformedEnvelope, "%s: has 1 to %d visible characters of ASCII", path, MaxKey).With(map[string]string{"path": path})
	}
	return "key " + given[0], nil
}
