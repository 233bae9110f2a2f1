package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Caller is a principal for whom a gateway acts, let in by a token.
type Caller struct {
	custody.Pass
	service *Service
}

// ErrReadOnly refuses what changes something to a token that only reads.
var ErrReadOnly = session.Refuse(session.Unauthorized, "the token is read-only")

// Acts refuses a caller that may only read.
func (c Caller) Acts() error {
	if c.ReadOnly {
		return ErrReadOnly
	}
	return nil
}

// Charge charges requests that a gateway answers by itself to the caller, or refuses them.
func (c Caller) Charge(requests int) error {
	if c.service.Charge == nil {
		return nil
	}
	return c.service.Charge(c.Agent, requests)
}

// Until is a context that ends with the caller's token, for the cause custody.ErrToken.
func (c Caller) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if !c.Expires.IsZero() {
		stop = time.AfterFunc(c.Expires.Sub(c.service.now()), func() { cancel(custody.ErrToken) }).Stop
	}
	if c.Removed != nil {
		go func() {
			select {
			case <-c.Removed:
				cancel(custody.ErrToken)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Call calls a verb and reads its reply.
func (c Caller) Call(ctx context.Context, verb api.Verb, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := c.CallJSON(ctx, verb.Name, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}

// CallJSON calls a verb with a request that is JSON, and returns its reply as it is.
func (c Caller) CallJSON(ctx context.Context, verb string, request []byte) ([]byte, error) {
	if err := room(ctx); err != nil {
		return nil, err
	}
	leaveSlot(ctx)
	if ending := c.service.Ending; ending != nil && verb == api.TurnWait.Name {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(ending, cancel)()
	}
	answer, err := c.service.CallAs(ctx, c.Agent, verb, request)
	if ending := c.service.Ending; err != nil && ending != nil && ending.Err() != nil && verb == api.TurnWait.Name {
		return nil, ErrEnding
	}
	keep(ctx, answer)
	return answer, err
}

// ErrEnding ends a wait for a turn when the broker stops.
var ErrEnding = session.Refuse(session.Unavailable, "the broker stops: wait again, for another one or once it is back")

// View is a session as the caller sees it.
func (c Caller) View(ctx context.Context, id performatives.SessionID) (v api.SessionView, err error) {
	return v, c.Call(ctx, api.SessionGet.Verb, api.GetSession{Session: id}, &v)
}

// Messages is a page of a session's transcript.
func (c Caller) Messages(ctx context.Context, q api.ListMessages) (page api.Messages, err error) {
	return page, c.Call(ctx, api.SessionMessages.Verb, q, &page)
}

// Say says an act, which the broker makes an envelope and signs. What is said again under the
// same key, or with its messageId, is answered with its first acceptance, also after a restart;
// something else under it is refused.
func (c Caller) Say(ctx context.Context, q api.Say) (accepted api.Acceptance, err error) {
	if err := c.Acts(); err != nil {
		return accepted, err
	}
	if q.Key == "" && q.Session != "" && q.Message == "" { // so that another broker can be asked if one goes
		q.Message = performatives.MessageID(uuid.Must(uuid.NewV7()).String())
	}
	err = c.Call(ctx, api.SessionSay.Verb, q, &accepted)
	if refusal, is := errors.AsType[*session.Refusal](err); q.Asked != "" && is && strings.HasPrefix(refusal.Message, "/asked:") { // of a broker of an earlier release
		q.Asked = ""
		err = c.Call(ctx, api.SessionSay.Verb, q, &accepted)
	}
	return accepted, err
}

// Fits refuses an act that no session would take now, by its body alone, before there is a session.
func (c Caller) Fits(q api.Say) error {
	return c.service.Fits(performatives.Parse(q.Performative), q.Body)
}

// Before finds what was accepted under a key before, and its session. It refuses a key under which another
// request than that of the digest was accepted; "" is any.
func (c Caller) Before(ctx context.Context, key string, asked performatives.Hash) (id performatives.SessionID, message performatives.MessageID, accepted bool, err error) {
	leaveSlot(ctx)
	return c.service.Before(ctx, c.Agent, key, asked)
}

// Submit submits an envelope that the caller has signed.
func (c Caller) Submit(ctx context.Context, id performatives.SessionID, envelope []byte) (api.Acceptance, error) {
	if err := c.Acts(); err != nil {
		return api.Acceptance{}, err
	}
	leaveSlot(ctx)
	return c.service.SubmitAs(ctx, c.Agent, id, envelope)
}

// An Opening is what a hosted agent opens a session with.
type Opening struct {
	With       []performatives.Agent     `json:"with"`
	Purpose    string                    `json:"purpose"`
	Subject    string                    `json:"subject,omitzero"` // by default the purpose
	Mode       string                    `json:"mode,omitzero"`
	Terms      map[string]jsontext.Value `json:"terms,omitzero"`
	ValidUntil string                    `json:"validUntil,omitzero"`
}

// Check refuses terms that are not what the opening says beside them.
func (o Opening) Check() error {
	for _, own := range []struct {
		name  string
		value any
		said  bool
	}{{"purpose", o.Purpose, true}, {"mode", o.Mode, o.Mode != ""}, {"participants", o.With, true}} {
		text, err := json.Marshal(own.value)
		if given, both := o.Terms[own.name]; err == nil && both && own.said && !SameJSON(given, text) {
			return session.Refuse(session.MalformedEnvelope, "/terms/%s: is not what the request says beside its terms; leave it out", own.name).With(map[string]string{"path": "/terms/" + own.name})
		}
	}
	return nil
}

// SameJSON reports whether two values are the same, however they are written.
func SameJSON(a, b jsontext.Value) bool {
	one, two := a.Clone(), b.Clone()
	return one.Canonicalize() == nil && two.Canonicalize() == nil && bytes.Equal(one, two)
}

// Invitation is the PROPOSE that opens the session.
func (o Opening) Invitation() (s api.Say, err error) {
	terms := maps.Clone(o.Terms)
	if terms == nil {
		terms = map[string]jsontext.Value{}
	}
	if terms["purpose"], err = json.Marshal(o.Purpose); err != nil {
		return s, err
	}
	if o.Mode != "" {
		if terms["mode"], err = json.Marshal(o.Mode); err != nil {
			return s, err
		}
	}
	if terms["participants"], err = json.Marshal(o.With); err != nil {
		return s, err
	}
	body := map[string]any{
		"proposalId": "invitation", "type": performatives.SessionInvitation, "subject": cmp.Or(o.Subject, o.Purpose), "terms": terms,
	}
	if o.ValidUntil != "" {
		body["validUntil"] = o.ValidUntil
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	return api.Say{Performative: performatives.Propose.String(), Body: raw}, err
}
