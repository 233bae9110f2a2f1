package httpgateway

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// Members of a verb's request that HTTP has elsewhere.
const (
	workerMember   = "worker"   // the token's id
	envelopeMember = "envelope" // a body of its own type
)

// pickup claims the turn that has waited longest, or answers 204.
func (c *call) pickup() {
	reply, err := c.called()
	switch {
	case err != nil:
		c.refuse(err)
	case bytes.Equal(reply, []byte("{}")):
		c.w.WriteHeader(http.StatusNoContent)
	default:
		write(c.w, http.StatusOK, jsonType, reply)
	}
}

// respond answers a turn with an act, or with a signed envelope.
func (c *call) respond() {
	head, err := c.ifMatch()
	if err == nil && head != "" {
		err = malformed("/If-Match", "is not taken by the answer to a turn: a claim is gone once the turn is, and POST /sessions/{sessionId}/messages takes it")
	}
	if err != nil {
		c.refuse(err)
		return
	}
	if c.contentType() != envelopeType {
		reply, err := c.called()
		c.responded(reply, err)
		return
	}
	envelope, err := c.read(envelopeType)
	if err == nil && len(envelope) == 0 {
		err = malformed("", "the body is a signed envelope")
	}
	if err != nil {
		c.refuse(err)
		return
	}
	var signed map[string]jsontext.Value
	if err := decode(envelope, &signed); err != nil {
		c.refuse(err)
		return
	}
	request, err := json.Marshal(api.RespondTurn{ID: c.r.PathValue("turnId"), Worker: c.Worker, Envelope: envelope})
	if err != nil {
		c.refuse(err)
		return
	}
	reply, err := c.CallJSON(c.r.Context(), c.route.verb.Name, request)
	c.responded(reply, err)
}

// responded answers with the acceptance. What the protocol refuses is 422, so that it
// differs from a claim that is lost.
func (c *call) responded(reply []byte, err error) {
	if err == nil {
		write(c.w, http.StatusOK, jsonType, reply)
		return
	}
	if refusal, is := errors.AsType[*session.Refusal](err); is && ofAct(refusal) {
		err = status{refusal, http.StatusUnprocessableEntity}
	}
	c.refuse(err)
}

// ofAct reports whether a refusal is about the act, and not about the turn, the request or
// the broker.
func ofAct(refusal *session.Refusal) bool {
	switch refusal.Code {
	case session.MalformedEnvelope, session.UnknownSession, session.TooLarge, session.RateLimited, session.Unavailable:
		return false
	default:
		return api.TurnOf(refusal) == ""
	}
}
