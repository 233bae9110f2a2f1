package hosted

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// ofRequest is before the digest of a request. Acts of earlier releases have that of what was said.
const ofRequest = "request "

// content is a digest of what an agent says, and where, or of what it was asked to say.
func content(said api.Say) (performatives.Hash, error) {
	if said.Asked != "" {
		return ofRequest + said.Asked, nil
	}
	id := said.Session
	said.Session, said.Key, said.IfHead = "", "", ""
	data, err := json.Marshal(struct {
		Session performatives.SessionID `json:"sessionId"`
		Said    api.Say                 `json:"said"`
	}{id, said})
	if err != nil {
		return "", err
	}
	canonical, err := performatives.Canonical(data)
	return performatives.Hash(strings.TrimPrefix(string(performatives.HashOf(canonical)), "sha256:")), err
}

// withoutPrivate takes terms.private out of an invitation: the transcript is for both sides.
func withoutPrivate(s api.Say) (body, private jsontext.Value) {
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
