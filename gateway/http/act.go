package httpgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/idempotency"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// envelopeType is that of an envelope which its sender has signed.
const envelopeType = "application/asp+json"

// A said is what a hosted agent wants to say; the gateway makes an envelope of it.
type said struct {
	Performative string                  `json:"performative"`
	Body         jsontext.Value          `json:"body,omitzero"`
	Recipient    jsontext.Value          `json:"recipient,omitzero"`
	Constraints  jsontext.Value          `json:"constraints,omitzero"`
	Message      performatives.MessageID `json:"messageId,omitzero"`
}

// An opening is what a hosted agent opens a session with.
type opening struct {
	With       []performatives.Agent     `json:"with"`
	Purpose    string                    `json:"purpose"`
	Subject    string                    `json:"subject,omitzero"`
	Mode       string                    `json:"mode,omitzero"`
	Terms      map[string]jsontext.Value `json:"terms,omitzero"`
	ValidUntil string                    `json:"validUntil,omitzero"`
}

// act submits one act in a session.
func (c *call) act() {
	data, err := c.read(jsonType, envelopeType)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	if c.contentType() == envelopeType {
		c.submit(c.session(), data, http.StatusOK)
		return
	}
	var s said
	if err := strictly(data, &s, "performative", "body?", "recipient?", "constraints?", "messageId?"); err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answerAct(c.session(), s, http.StatusOK)
}

// answerAct says something and answers with the acceptance.
func (c *call) answerAct(id performatives.SessionID, s said, success int) {
	accepted, err := c.say(id, s)
	c.accepted(accepted, err, success)
}

// close says CLOSE.
func (c *call) close() {
	body, err := c.object(true)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answerAct(c.session(), said{Performative: performatives.Close.String(), Body: raw}, http.StatusOK)
}

// open opens a session.
func (c *call) open() {
	data, err := c.read(jsonType, envelopeType)
	if err != nil {
		c.g.refuse(c.w, err)
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
	var o opening
	if err := strictly(data, &o, "with", "purpose", "subject?", "mode?", "terms?", "validUntil?"); err != nil {
		c.g.refuse(c.w, err)
		return
	}
	s, err := o.invitation()
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answerAct("", s, http.StatusCreated)
}

// invitation is the PROPOSE that opens the session.
func (o opening) invitation() (s said, err error) {
	terms := maps.Clone(o.Terms)
	if terms == nil {
		terms = map[string]jsontext.Value{}
	}
	terms["purpose"] = text(o.Purpose)
	if o.Mode != "" {
		terms["mode"] = text(o.Mode)
	}
	if terms["participants"], err = json.Marshal(o.With); err != nil {
		return s, err
	}
	subject := o.Subject
	if subject == "" {
		subject = o.Purpose
	}
	body := map[string]any{
		"proposalId": "invitation", "type": performatives.SessionInvitation, "subject": subject, "terms": terms,
	}
	if o.ValidUntil != "" {
		body["validUntil"] = o.ValidUntil
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	return said{Performative: performatives.Propose.String(), Body: raw}, err
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
	for _, m := range members {
		name, optional := strings.CutSuffix(m, "?")
		if _, has := given[name]; !has && !optional {
			return malformed("/"+name, "is missing")
		}
		delete(given, name)
	}
	for name := range given {
		return malformed("/"+clip(name), "is not taken here")
	}
	return unreadable(performatives.Unmarshal(canonical, into, ""))
}

// submit submits an envelope as it is.
func (c *call) submit(id performatives.SessionID, envelope []byte, success int) {
	accepted, err := c.g.o.Broker.SubmitAs(c.r.Context(), c.pass.Agent, id, envelope)
	c.accepted(accepted, err, success)
}

func (c *call) accepted(accepted api.Acceptance, err error, success int) {
	var reply []byte
	if err == nil {
		reply, err = json.Marshal(accepted, json.Deterministic(true))
	}
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	if success == http.StatusCreated {
		c.w.Header().Set("Location", Base+"/sessions/"+string(accepted.Session))
	}
	write(c.w, success, jsonType, reply)
}

// say makes an envelope, signs it as the hosted agent and submits it.
func (c *call) say(id performatives.SessionID, s said) (accepted api.Acceptance, err error) {
	signer, err := c.g.o.Custody.Signer(c.r.Context(), c.pass.Agent)
	if err != nil {
		return accepted, err
	}
	act := idempotency.Act{Session: id, Message: s.Message, At: c.g.o.Now().UTC().Truncate(time.Millisecond)}
	if act.Session == "" {
		act.Session = performatives.SessionID(newID())
	}
	if act.Message == "" {
		act.Message = performatives.MessageID(newID())
	}
	key, err := c.key(id, s)
	if err != nil {
		return accepted, err
	}
	if key == "" {
		return c.send(act, s, signer)
	}
	if act.Content, err = content(id, s); err != nil {
		return accepted, err
	}
	return c.once(key, act, s, signer)
}

// maxTries is how often an act is tried while others come under its key.
const maxTries = 5

// once sends an act that may have been sent before under the same key.
func (c *call) once(key string, act idempotency.Act, s said, signer performatives.Signer) (accepted api.Acceptance, err error) {
	for range maxTries {
		accepted, err = c.try(key, act, s, signer)
		if !errors.Is(err, idempotency.ErrConflict) {
			return accepted, err
		}
	}
	return accepted, session.Busy()
}

// try fails with idempotency.ErrConflict if another request was faster.
func (c *call) try(key string, act idempotency.Act, s said, signer performatives.Signer) (accepted api.Acceptance, err error) {
	ctx, agent := c.r.Context(), c.pass.Agent
	first, repeat, err := c.g.o.Keys.Reserve(ctx, agent, key, act)
	if err != nil {
		return accepted, err
	}
	if !repeat {
		return c.send(first, s, signer)
	}
	if first.Content == act.Content {
		accepted, err = c.send(first, s, signer)
		if !errors.Is(err, &session.Refusal{Code: session.StaleTimestamp}) {
			return accepted, err
		}
	} else if taken, err := c.taken(ctx, first); err != nil {
		return accepted, err
	} else if taken {
		return accepted, session.Refuse(session.Duplicate, "something else was accepted under this Idempotency-Key or messageId").
			With(map[string]any{"id": first.Message})
	}
	// The first attempt was not accepted. Its message id stays, so only one of the two can be.
	again := act
	again.Message = first.Message
	if c.session() == "" {
		again.Session = first.Session
	}
	if err := c.g.o.Keys.Replace(ctx, agent, key, first, again); err != nil {
		return accepted, err
	}
	return c.send(again, s, signer)
}

// taken tells whether an act is in its session's transcript.
func (c *call) taken(ctx context.Context, act idempotency.Act) (bool, error) {
	request, err := json.Marshal(api.ListMessages{Session: act.Session, Message: act.Message})
	if err != nil {
		return false, err
	}
	_, err = c.g.o.Broker.CallAs(ctx, c.pass.Agent, api.SessionMessages.Name, request)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return false, nil
	}
	return err == nil, err
}

// maxKey is the length of an Idempotency-Key.
const maxKey = 255

// key is what an act is retried by: the header, or the messageId.
func (c *call) key(id performatives.SessionID, s said) (string, error) {
	given := c.r.Header.Values("Idempotency-Key")
	switch {
	case len(given) > 1 || len(given) == 1 && (given[0] == "" || len(given[0]) > maxKey):
		return "", malformed("/Idempotency-Key", "has 1 to 255 characters, once")
	case len(given) == 1:
		return "key " + given[0], nil
	case s.Message != "":
		return "message " + string(id) + " " + string(s.Message), nil
	}
	return "", nil
}

// content is a digest of what an agent says, and where.
func content(id performatives.SessionID, s said) (performatives.Hash, error) {
	data, err := json.Marshal(struct {
		Session performatives.SessionID `json:"sessionId"`
		Said    said                    `json:"said"`
	}{id, s})
	if err != nil {
		return "", err
	}
	canonical, err := performatives.Canonical(data)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return performatives.Hash(hex.EncodeToString(sum[:])), nil
}

// send submits the envelope of an act. The same act makes the same bytes.
func (c *call) send(act idempotency.Act, s said, signer performatives.Signer) (api.Acceptance, error) {
	body, private := withoutPrivate(s)
	if s.Body = body; len(private) > 0 {
		if err := c.g.o.Private.KeepPrivate(c.r.Context(), c.pass.Agent, act.Session, private); err != nil {
			return api.Acceptance{}, err
		}
	}
	envelope, err := performatives.RawDraft{
		ID: act.Message, Session: act.Session, Timestamp: act.At, Sender: c.pass.Agent,
		Performative: s.Performative, Recipient: s.Recipient, Body: s.Body, Constraints: s.Constraints,
	}.Envelope(signer)
	if err != nil {
		return api.Acceptance{}, err
	}
	return c.g.o.Broker.SubmitAs(c.r.Context(), c.pass.Agent, act.Session, envelope)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
