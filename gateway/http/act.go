package httpgateway

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/hosted"
	"github.com/parley-asp/parley/performatives"
)

// envelopeType is that of an envelope which its sender has signed.
const envelopeType = "application/asp+json"

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
	var s hosted.Said
	if err := strictly(data, &s, "performative", "body?", "recipient?", "constraints?", "messageId?"); err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answerAct(c.session(), s, http.StatusOK)
}

// answerAct says something and answers with the acceptance.
func (c *call) answerAct(id performatives.SessionID, s hosted.Said, success int) {
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
	c.answerAct(c.session(), hosted.Said{Performative: performatives.Close.String(), Body: raw}, http.StatusOK)
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
	var o hosted.Opening
	if err := strictly(data, &o, "with", "purpose", "subject?", "mode?", "terms?", "validUntil?"); err != nil {
		c.g.refuse(c.w, err)
		return
	}
	s, err := o.Invitation()
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answerAct("", s, http.StatusCreated)
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

// say says something as the hosted agent.
func (c *call) say(id performatives.SessionID, s hosted.Said) (accepted api.Acceptance, err error) {
	key, err := c.key(id, s)
	if err != nil {
		return accepted, err
	}
	return c.g.o.Hosted.Say(c.r.Context(), c.pass.Agent, id, key, s)
}

// key is what an act is retried by: the header, or the messageId.
func (c *call) key(id performatives.SessionID, s hosted.Said) (string, error) {
	key, err := hosted.KeyIn(c.r.Header)
	if err == nil && key == "" && s.Message != "" {
		key = "message " + string(id) + " " + string(s.Message)
	}
	return key, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
