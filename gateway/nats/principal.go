package natsgateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// The inbox pages have authenticated the human who asks. They send the request on the
// human's own subjects, so that the same limits and checks apply, and whichever broker is
// free, or owns the session, answers.

// requestTimeout is longer than any call takes, also one that waits.
const requestTimeout = api.LongestWait + 5*time.Second

// onceTimeout is longer than a call takes, besides what it waits, that may not be sent again: the broker that took it may
// be gone.
const onceTimeout = 15 * time.Second

// answerWait is how long the first answer is waited for to what may be sent again: the broker that took it may be gone.
const answerWait = 5 * time.Second

// CallAs calls an api verb as a principal. A refusal comes as a *session.Refusal.
func (g *Gateway) CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) (reply []byte, err error) {
	if noun, what, two := strings.Cut(verb, "."); !two || !isToken(noun) || !isToken(what) {
		return nil, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q", verb)
	}
	again, within := repeatable(verb, request), requestTimeout
	if !again {
		within = min(within, onceTimeout+waits(verb, request))
	}
	return g.request(ctx, as, api.Call(as, verb), request, within, again)
}

// waits is how long a call may wait for something to happen.
func waits(verb string, request []byte) time.Duration {
	var asked api.WaitTurn
	switch {
	case !api.VerbNamed(verb).Waits:
		return 0
	case verb == api.TurnWait.Name && json.Unmarshal(request, &asked) == nil:
		return time.Duration(min(max(asked.Seconds, 0), api.LongestWait.Seconds()) * float64(time.Second))
	}
	return api.LongestWait
}

// repeatable reports whether a call that is sent twice is done once.
func repeatable(verb string, request []byte) bool {
	if verb == api.SessionSay.Name {
		var said api.Say
		return json.Unmarshal(request, &said, jsontext.AllowDuplicateNames(true)) == nil && (said.Key != "" || said.Session != "" && said.Message != "")
	}
	v := api.VerbNamed(verb)
	return v.Access == api.Read && !v.Waits
}

// SubmitAs submits an envelope as a principal, who must be its sender.
func (g *Gateway) SubmitAs(ctx context.Context, as performatives.Agent, id performatives.SessionID, envelope []byte) (accepted api.Acceptance, err error) {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return accepted, session.NoSuchSession()
	}
	reply, err := g.request(ctx, as, api.Submit(as, id), envelope, requestTimeout, true)
	if err != nil {
		return accepted, err
	}
	return accepted, json.Unmarshal(reply, &accepted)
}

func isToken(s string) bool { return s != "" && !strings.ContainsAny(s, ". *>\t\r\n") }

// away reports whether the NATS server has been away for a while: nobody could answer.
func (g *Gateway) away() bool { return g.o.Isolated() && !g.o.Conn.IsConnected() }

// request sends a request to the brokers, again if that is allowed and no answer comes, after twice as long each time.
// An error reply is returned as a refusal.
func (g *Gateway) request(ctx context.Context, as performatives.Agent, subject string, data []byte, within time.Duration, again bool) ([]byte, error) {
	if _, err := performatives.ParseAgent(string(as)); err != nil {
		return nil, session.Refuse(session.UnknownAgent, "you are not registered")
	}
	if int64(len(data)) > g.o.Conn.MaxPayload() {
		return nil, session.Refuse(session.TooLarge, "the request has more bytes than one message can have")
	}
	if g.away() {
		return nil, session.Busy()
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	wait := within
	if again {
		wait = answerWait
	}
	reply, err := g.ask(ctx, subject, data, wait)
	for again && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !g.away() {
		wait *= 2
		reply, err = g.ask(ctx, subject, data, wait)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil: // nobody answers, or not in time
		return nil, session.Busy()
	case reply.Header.Get(api.ErrorHeader) != "":
		return nil, refusalIn(reply)
	}
	return reply.Data, nil
}

func (g *Gateway) ask(ctx context.Context, subject string, data []byte, wait time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return g.o.Conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data, Header: telemetry.Headers(ctx)})
}

func refusalIn(reply *nats.Msg) error {
	var e api.ErrorReply
	if err := json.Unmarshal(reply.Data, &e); err != nil {
		return session.Busy()
	}
	return e.Refusal()
}
