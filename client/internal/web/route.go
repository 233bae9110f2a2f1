package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// route is where HTTP has what is asked on a subject.
func route(subject string, data []byte) (method, path, contentType string, body []byte, err error) {
	if _, id, submits := strings.Cut(subject, ".submit."); submits {
		contentType, body, err = said(data)
		return http.MethodPost, api.SubmitEndpoint.At(id), contentType, body, err
	}
	_, name, _ := strings.Cut(subject, ".api.")
	if name == api.BrokerInfo.Name {
		return http.MethodGet, "/version", "", nil, nil
	}
	verb := api.VerbNamed(name)
	if verb.HTTP == "" {
		return "", "", "", nil, fmt.Errorf("client: %s is not called over HTTP", name)
	}
	path, body, err = verb.OverHTTP(data)
	if body != nil {
		contentType = "application/json"
	}
	return verb.HTTP.Method(), path, contentType, body, err
}

// said is an envelope as it is posted: as it was signed, or without a signature what the
// broker makes an envelope of.
func said(envelope []byte) (contentType string, body []byte, err error) {
	var e struct {
		Message      performatives.MessageID `json:"messageId"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient,omitzero"`
		Constraints  jsontext.Value          `json:"constraints,omitzero"`
		Content      struct {
			Body jsontext.Value `json:"body"`
		} `json:"content"`
		Integrity struct {
			Signature string             `json:"signature"`
			Previous  performatives.Hash `json:"previousHash"`
		} `json:"integrity"`
	}
	var submission struct {
		Envelope jsontext.Value            `json:"envelope"`
		Sealed   performatives.SealedParts `json:"sealed"`
	}
	if err := json.Unmarshal(envelope, &submission); err != nil {
		return "", nil, err
	}
	inside := envelope
	if submission.Sealed != nil {
		inside = submission.Envelope
	}
	if err := json.Unmarshal(inside, &e); err != nil {
		return "", nil, err
	}
	switch {
	case e.Integrity.Signature != "":
		return "application/asp+json", envelope, nil
	case e.Integrity.Previous != "":
		return "", nil, errors.New("client: the broker links what a hosted agent says")
	}
	act := performatives.Parse(e.Performative) // the broker seals what it signs, unless it is told not to
	body, err = json.Marshal(struct {
		Message      performatives.MessageID `json:"messageId"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient,omitzero"`
		Constraints  jsontext.Value          `json:"constraints,omitzero"`
		Body         jsontext.Value          `json:"body"`
		Open         bool                    `json:"open,omitzero"`
	}{e.Message, e.Performative, e.Recipient, e.Constraints, performatives.Opened(act, e.Content.Body, submission.Sealed), submission.Sealed == nil && sealable[act]})
	return "application/json", body, err
}

// sealable are the acts with members that may be sealed.
var sealable = map[performatives.Performative]bool{performatives.Escalate: true, performatives.Inform: true}
