package broker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Faces other than NATS, such as the inbox's web page, have found out by
// themselves who is asking; from there on they are principals like any other.
// They ask on the principal's own subjects, so the same gate lets them in, the
// same checks judge them, and whichever broker is free answers.

// directTimeout is for a caller who sets none: longer than any call takes.
const directTimeout = 40 * time.Second

// Call calls an api verb as a principal. A refusal comes as a *session.Refusal.
func (b *Broker) Call(ctx context.Context, as performatives.Agent, verb string, request []byte) (reply []byte, err error) {
	if noun, what, two := strings.Cut(verb, "."); !two || !isToken(noun) || !isToken(what) {
		return nil, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q", verb)
	}
	return b.request(ctx, as, api.Call(as, verb), request)
}

// Submit submits an envelope as a principal, who must be its sender.
func (b *Broker) Submit(ctx context.Context, as performatives.Agent, id performatives.SessionID, envelope []byte) (accepted api.Acceptance, err error) {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return accepted, session.NoSuchSession()
	}
	reply, err := b.request(ctx, as, api.Submit(as, id), envelope)
	if err != nil {
		return accepted, err
	}
	return accepted, json.Unmarshal(reply, &accepted)
}

func isToken(s string) bool { return s != "" && !strings.ContainsAny(s, ". *>\t\r\n") }

// request sends one to the brokers and reads a refusal as one.
func (b *Broker) request(ctx context.Context, as performatives.Agent, subject string, data []byte) ([]byte, error) {
	if _, err := performatives.ParseAgent(string(as)); err != nil {
		return nil, session.Refuse(session.UnknownAgent, "you are not registered")
	}
	if int64(len(data)) > b.Conn.MaxPayload() {
		return nil, session.Refuse(session.TooLarge, "the request has more bytes than one message can have")
	}
	ctx, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	reply, err := b.Conn.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil: // nobody answers, or not in time
		return nil, unavailable()
	case reply.Header.Get(api.ErrorHeader) != "":
		return nil, refusalIn(reply)
	}
	return reply.Data, nil
}

func refusalIn(reply *nats.Msg) error {
	var e api.ErrorReply
	if err := json.Unmarshal(reply.Data, &e); err != nil {
		return unavailable()
	}
	return e.Refusal()
}
