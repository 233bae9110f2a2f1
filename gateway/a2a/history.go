package a2agateway

import (
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// messageOf is an entry as the caller reads it: its text, and the act as data; to who asked for
// Extension the signed envelope.
func messageOf(e api.Entry, c call) *a2a.Message {
	m := &a2a.Message{
		ID: string(e.ID), ContextID: string(e.Session), TaskID: a2a.TaskID(e.Session), Role: a2a.MessageRoleAgent,
		Metadata: map[string]any{"performative": e.Performative, "from": string(e.From), "sequenceNumber": e.Sequence},
	}
	if e.From == c.Agent || e.OnBehalfOf == c.Agent {
		m.Role = a2a.MessageRoleUser
	}
	if text := textOf(e); text != "" {
		m.Parts = append(m.Parts, &a2a.Part{Content: a2a.Text(text), MediaType: textType})
	}
	data := object{"performative": e.Performative, "from": string(e.From), "sequenceNumber": e.Sequence, "at": e.At}
	if e.OnBehalfOf != "" {
		data["onBehalfOf"] = string(e.OnBehalfOf)
	}
	kind := jsonType
	var envelope object
	var body any
	if c.asp && json.Unmarshal(e.Bytes, &envelope) == nil {
		data, kind, m.Extensions = envelope, envelopeType, []string{Extension}
	} else if json.Unmarshal(e.Body, &body) == nil {
		data["body"] = body
	}
	m.Parts = append(m.Parts, &a2a.Part{Content: a2a.Data{Value: data}, MediaType: kind})
	return m
}

// textOf is what an act says in words, "" if it says nothing.
func textOf(e api.Entry) string {
	var body struct {
		Message string         `json:"message"`
		Reason  string         `json:"reason"`
		Subject string         `json:"subject"`
		Summary string         `json:"summary"`
		Data    jsontext.Value `json:"data"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return ""
	}
	var said struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(body.Data, &said.Text) != nil && json.Unmarshal(body.Data, &said) != nil {
		said.Text = ""
	}
	for _, text := range []string{said.Text, body.Message, body.Reason, body.Subject, body.Summary} {
		if text != "" {
			return text
		}
	}
	return ""
}
