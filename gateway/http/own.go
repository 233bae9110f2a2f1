package httpgateway

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// card registers the caller's own card.
func (c *call) card() {
	card, err := c.object(false)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	of := text(c.r.PathValue("agentId"))
	if given, has := card["agentId"]; has && string(given) != string(of) {
		c.g.refuse(c.w, malformed("/agentId", "is not the one in the path"))
		return
	}
	card["agentId"] = of
	request, err := json.Marshal(map[string]any{"card": card}, json.Deterministic(true))
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	c.answer(request)
}

// withoutPrivate takes terms.private out of an invitation: the transcript is for both sides.
func withoutPrivate(s said) (body, private jsontext.Value) {
	var whole, terms map[string]jsontext.Value
	var is string
	if s.Performative != performatives.Propose.String() || json.Unmarshal(s.Body, &whole) != nil ||
		json.Unmarshal(whole["type"], &is) != nil || is != performatives.SessionInvitation || json.Unmarshal(whole["terms"], &terms) != nil {
		return s.Body, nil
	}
	private, has := terms["private"]
	if !has {
		return s.Body, nil
	}
	delete(terms, "private")
	var err error
	if whole["terms"], err = json.Marshal(terms, json.Deterministic(true)); err == nil {
		body, err = json.Marshal(whole, json.Deterministic(true))
	}
	if err != nil {
		return s.Body, nil // unreachable: all of it was read
	}
	return body, private
}

// prove makes a token for who proves to have its principal's key.
func (c *call) prove() {
	data, err := c.read(jsonType)
	var proof api.ProveToken
	if err == nil {
		err = strictly(data, &proof, "agentId", "timestamp", "audience", "signature")
	}
	var token api.Token
	if err == nil {
		token, err = c.g.o.Custody.Prove(c.r.Context(), proof)
	}
	var reply []byte
	if err == nil {
		reply, err = json.Marshal(token, json.Deterministic(true))
	}
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	write(c.w, http.StatusCreated, jsonType, reply)
}
