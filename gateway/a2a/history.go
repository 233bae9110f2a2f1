package a2agateway

import (
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// messageOf is an entry as the caller reads it: its text, and the act as data; to who asked for
// Extension the signed envelope.
func messageOf(e api.Entry, c call, task a2a.TaskID) *a2a.Message {
	m := &a2a.Message{
		ID: string(e.ID), ContextID: string(e.Session), TaskID: task, Role: a2a.MessageRoleAgent,
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

// clientType is the media type of what an act's content.context has of the client's message.
const clientType = "application/a2a+json"

// A clientMessage is the item of content.context with the id of the message that became the act.
type clientMessage struct {
	MimeType string `json:"mimeType"`
	ID       string `json:"messageId"`
}

func (s said) context() ([]jsontext.Value, error) {
	item, err := json.Marshal(clientMessage{clientType, s.id})
	if err != nil {
		return nil, invalid("message.messageId is no UTF-8")
	}
	return []jsontext.Value{item}, nil
}

// digest is of what the message says: the act that it becomes depends on the session's state, too.
func (s said) digest() (performatives.Hash, error) {
	data, err := json.Marshal([]any{s.text, s.action}, json.Deterministic(true))
	if err != nil {
		return "", invalid("the message is no UTF-8")
	}
	return performatives.HashOf(data), nil
}

// clientsID is the id of the client's message that became an act; "" if none did.
func clientsID(e api.Entry) string {
	for _, raw := range e.Context {
		var item clientMessage
		if raw.Kind() == '{' && json.Unmarshal(raw, &item) == nil && item.MimeType == clientType {
			return item.ID
		}
	}
	return ""
}

// history is the task's part of the transcript as messages. Those of the client have the ids that it gave them. The
// first one became the invitation and what is said after it: it is there once, with all its text.
func (s snapshot) history(c call) []*a2a.Message {
	all, first := []*a2a.Message{}, map[string]*a2a.Message{}
	for _, e := range s.entries {
		if e.Sequence < s.first {
			continue
		}
		m := messageOf(e, c, s.id())
		all = append(all, m)
		id := clientsID(e)
		if id == "" || m.Role != a2a.MessageRoleUser {
			continue
		}
		was, again := first[id]
		if !again {
			first[id], m.ID = m, id
			continue
		}
		if len(m.Parts) > 1 && len(was.Parts) > 1 { // the text, and the data
			was.Parts[0], m.Parts = m.Parts[0], m.Parts[1:]
		}
	}
	return all
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
