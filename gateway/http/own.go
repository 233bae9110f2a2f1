package httpgateway

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// card registers the caller's own card.
func (c *call) card() {
	data, err := c.read(jsonType)
	card, sent := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if err == nil {
		err = decode(data, &card)
	}
	if err == nil && card == nil {
		err = malformed("", "want a JSON object, not null")
	}
	if err == nil {
		err = unreadable(json.Unmarshal(data, &sent))
	}
	if err != nil {
		c.refuse(err)
		return
	}
	if skills, has := sent["skills"]; has { // the order of their members counts
		card["skills"] = skills
	}
	of := text(c.r.PathValue("agentId"))
	if given, has := card["agentId"]; has && string(given) != string(of) {
		c.refuse(malformed("/agentId", "is not the one in the path"))
		return
	}
	card["agentId"] = of
	request, err := json.Marshal(map[string]any{"card": card}, json.Deterministic(true))
	var reply []byte
	if err == nil {
		reply, err = c.CallJSON(c.r.Context(), c.route.verb.Name, request)
	}
	c.answer(reply, err)
}

const maxProof = 4 << 10 // bytes, of who is not known yet

// prove makes a token for who proves to have its principal's key.
func (c *call) prove() {
	data, err := c.read(jsonType)
	if err == nil && len(data) > maxProof {
		err = session.Refuse(session.TooLarge, "a proof has at most %d bytes", maxProof)
	}
	var proof api.ProveToken
	if err == nil {
		err = strictly(data, &proof, "agentId", "timestamp", "audience", "signature")
	}
	var token api.Token
	if err == nil {
		token, err = c.g.service.Custody.Prove(c.r.Context(), proof)
	}
	var reply []byte
	if err == nil {
		reply, err = json.Marshal(token, json.Deterministic(true))
	}
	if err != nil {
		c.refuse(err)
		return
	}
	write(c.w, http.StatusCreated, jsonType, reply)
}
