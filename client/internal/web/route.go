package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

const base = "/v1/asp"

// paths say where HTTP has a verb: ":name" stands for a member of its request. What is left
// of it is the query of a GET and the body of others.
var paths = map[string]string{
	api.SessionList.Name: "GET /sessions", api.SessionGet.Name: "GET /sessions/:sessionId", api.SessionMessages.Name: "GET /sessions/:sessionId/messages",
	api.TurnPickup.Name: "POST /turns/pickup", api.TurnRespond.Name: "POST /turns/:turnId/respond", api.TurnRelease.Name: "POST /turns/:turnId/release",
	api.TurnWait.Name: "GET /turns/wait", api.AgentList.Name: "GET /agents", api.AgentGet.Name: "GET /agents/:agentId/card",
	api.AgreementList.Name: "GET /agreements", api.AgreementGet.Name: "GET /agreements/:agreementId", api.InsightsGet.Name: "GET /insights",
	api.AgentSearch.Name: "GET /discover", api.DiscoveryCall.Name: "POST /discover",
	api.EscalationList.Name: "GET /escalations", api.EscalationGet.Name: "GET /escalations/:escalationId",
	api.EscalationHistory.Name: "GET /escalations/:escalationId/history", api.EscalationClaim.Name: "POST /escalations/:escalationId/claim",
	api.EscalationRelease.Name: "POST /escalations/:escalationId/release", api.EscalationAssign.Name: "POST /escalations/:escalationId/assign",
	api.EscalationComment.Name: "POST /escalations/:escalationId/comment", api.EscalationTransfer.Name: "POST /escalations/:escalationId/transfer",
}

// names are what a query calls a member otherwise.
var names = map[string]string{"since": "since_sequence", "minTrust": "min_trust"}

// route is where HTTP has what is asked on a subject.
func route(subject string, data []byte) (method, path, contentType string, body []byte, err error) {
	if _, id, submits := strings.Cut(subject, ".submit."); submits {
		contentType, body, err = said(data)
		return http.MethodPost, base + "/sessions/" + id + "/messages", contentType, body, err
	}
	_, verb, _ := strings.Cut(subject, ".api.")
	if verb == api.BrokerInfo.Name {
		return http.MethodGet, "/version", "", nil, nil
	}
	method, path, has := strings.Cut(paths[verb], " ")
	if !has {
		return "", "", "", nil, fmt.Errorf("client: %s is not called over HTTP", verb)
	}
	members, query := map[string]jsontext.Value{}, url.Values{}
	if err := json.Unmarshal(data, &members); err != nil {
		return "", "", "", nil, err
	}
	for name, raw := range members {
		value := string(raw)
		if raw.Kind() == '"' {
			if err := json.Unmarshal(raw, &value); err != nil {
				return "", "", "", nil, err
			}
		}
		if filled := strings.Replace(path, ":"+name, url.PathEscape(value), 1); filled != path {
			path = filled
			delete(members, name)
			continue
		}
		var list []string
		if raw.Kind() == '[' && json.Unmarshal(raw, &list) == nil {
			query[cmp.Or(names[name], name)] = list
			continue
		}
		query.Set(cmp.Or(names[name], name), value)
	}
	if method == http.MethodGet {
		return method, base + path + "?" + query.Encode(), "", nil, nil
	}
	body, err = json.Marshal(members, json.Deterministic(true))
	return method, base + path, "application/json", body, err
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
	if err := json.Unmarshal(envelope, &e); err != nil {
		return "", nil, err
	}
	switch {
	case e.Integrity.Signature != "":
		return "application/asp+json", envelope, nil
	case e.Integrity.Previous != "":
		return "", nil, errors.New("client: the broker links what a hosted agent says")
	}
	body, err = json.Marshal(struct {
		Message      performatives.MessageID `json:"messageId"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient,omitzero"`
		Constraints  jsontext.Value          `json:"constraints,omitzero"`
		Body         jsontext.Value          `json:"body"`
	}{e.Message, e.Performative, e.Recipient, e.Constraints, e.Content.Body})
	return "application/json", body, err
}
