package httpgateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// envelopeType is that of an envelope which its sender has signed.
const envelopeType = "application/asp+json"

// act submits one act in a session.
func (c *call) act() {
	data, err := c.read(jsonType, envelopeType)
	if err != nil {
		c.refuse(err)
		return
	}
	head, err := c.ifMatch()
	if err != nil {
		c.refuse(err)
		return
	}
	if c.contentType() == envelopeType {
		if head != "" {
			c.refuse(malformed("/If-Match", "is of an act that the installation signs: an envelope names its head by integrity.previousHash"))
			return
		}
		c.submit(c.session(), data, http.StatusOK)
		return
	}
	var s api.Say
	if err := strictly(data, &s, "performative", "body?", "recipient?", "constraints?", "messageId?", "open?"); err != nil {
		c.refuse(err)
		return
	}
	s.Session, s.IfHead = c.session(), head
	c.answerAct(s, http.StatusOK)
}

// ifMatch is the head that the request is decided on, as the ETag of a snapshot has it; "" for any.
func (c *call) ifMatch() (performatives.Hash, error) {
	given := c.r.Header.Values("If-Match")
	if len(given) == 0 || len(given) == 1 && given[0] == "*" {
		return "", nil
	}
	tag := strings.TrimPrefix(given[0], "W/")
	if hash, quoted := strings.CutPrefix(tag, `"`); len(given) == 1 && quoted && strings.HasSuffix(hash, `"`) && strings.Count(hash, `"`) == 1 {
		return performatives.Hash(strings.TrimSuffix(hash, `"`)), nil
	}
	return "", malformed("/If-Match", "is one ETag of a snapshot, in quotes, or *")
}

// snapshot answers session.snapshot. Its ETag is the head.
func (c *call) snapshot() {
	request, err := c.request()
	if err != nil {
		c.refuse(err)
		return
	}
	reply, err := c.CallJSON(c.r.Context(), c.route.verb.Name, request)
	var of struct {
		Head api.SnapshotHead `json:"head"`
	}
	if err == nil && json.Unmarshal(reply, &of) == nil {
		c.w.Header().Set("ETag", `"`+string(of.Head.Hash)+`"`)
	}
	c.answer(reply, err)
}

// answerAct says something and answers with the acceptance.
func (c *call) answerAct(s api.Say, success int) {
	accepted, err := c.say(c.r.Context(), s)
	c.accepted(accepted, err, success)
}

// close says CLOSE, signed by the installation.
func (c *call) close() {
	body, err := c.object(true)
	if c.contentType() == envelopeType {
		err = status{session.Refuse(session.MalformedEnvelope, closeSigned), http.StatusUnsupportedMediaType}
	}
	if err != nil {
		c.refuse(err)
		return
	}
	head, err := c.ifMatch()
	if err != nil {
		c.refuse(err)
		return
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		c.refuse(err)
		return
	}
	accepted, err := c.say(c.r.Context(), api.Say{Session: c.session(), IfHead: head, Performative: performatives.Close.String(), Body: raw})
	if isUnauthorized(err) {
		if _, unhosted := c.g.service.Custody.Signer(c.r.Context(), c.Agent); isUnauthorized(unhosted) {
			err = session.Refuse(session.Unauthorized, closeSigned)
		}
	}
	c.accepted(accepted, err, http.StatusOK)
}

// closeSigned tells a principal that signs its CLOSE where to send it.
const closeSigned = "the installation signs what DELETE says: a principal that signs for itself sends a signed CLOSE by POST to /v1/asp/sessions/{sessionId}/messages, as " + envelopeType

func isUnauthorized(err error) bool {
	return errors.Is(err, &session.Refusal{Code: session.Unauthorized})
}

// open opens a session.
func (c *call) open() {
	data, err := c.read(jsonType, envelopeType)
	if err != nil {
		c.refuse(err)
		return
	}
	if c.contentType() == envelopeType {
		id := performatives.SessionID(newID()) // of an envelope that cannot be read, which is refused for that
		if m, err := performatives.Read(data); err == nil {
			id = m.Session
		}
		c.submit(id, data, http.StatusCreated)
		return
	}
	var o gateway.Opening
	err = strictly(data, &o, "with", "purpose", "subject?", "mode?", "terms?", "validUntil?")
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		c.refuse(err)
		return
	}
	s, err := o.Invitation()
	if err != nil {
		c.refuse(err)
		return
	}
	c.answerAct(s, http.StatusCreated)
}

// strictly decodes an object that has these members and no others; "?" marks one that it may lack.
func strictly(data []byte, into any, members ...string) error {
	canonical, err := performatives.Canonical(data)
	given := map[string]jsontext.Value{}
	if err == nil {
		err = performatives.Unmarshal(canonical, &given, "")
	}
	if err != nil {
		return unreadable(err)
	}
	takes := make([]string, len(members))
	for i, m := range members {
		name, optional := strings.CutSuffix(m, "?")
		takes[i] = name
		if _, has := given[name]; !has && !optional {
			return malformed("/"+name, "is missing")
		}
		delete(given, name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		return malformed("/"+clip(name), "is not taken here; there is "+strings.Join(takes, ", "))
	}
	return unreadable(performatives.Unmarshal(canonical, into, ""))
}

// submit submits an envelope as it is.
func (c *call) submit(id performatives.SessionID, envelope []byte, success int) {
	accepted, err := c.Submit(c.r.Context(), id, envelope)
	c.accepted(accepted, err, success)
}

func (c *call) accepted(accepted api.Acceptance, err error, success int) {
	var reply []byte
	if err == nil {
		reply, err = json.Marshal(accepted, json.Deterministic(true))
	}
	if refusal, is := errors.AsType[*session.Refusal](err); is && refusal.Code == session.ChainConflict && c.r.Header.Get("If-Match") != "" {
		err = status{refusal, http.StatusPreconditionFailed}
	}
	if err != nil {
		c.refuse(err)
		return
	}
	if success == http.StatusCreated {
		c.w.Header().Set("Location", api.SessionGet.HTTP.At(string(accepted.Session)))
	}
	write(c.w, success, jsonType, reply)
}

// say says something as the hosted agent. It is retried by the header, or by its messageId.
func (c *call) say(ctx context.Context, s api.Say) (accepted api.Acceptance, err error) {
	if s.Key, err = gateway.KeyIn(c.r.Header); err != nil {
		return accepted, err
	}
	if s.Key == "" && s.Message != "" {
		s.Key = "message " + string(s.Session) + " " + string(s.Message)
	}
	return c.Say(ctx, s)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
