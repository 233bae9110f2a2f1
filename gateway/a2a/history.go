package a2agateway

import (
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An entry is one of the transcript, as far as a message shows it.
type entry struct {
	raw jsontext.Value

	Message      performatives.MessageID `json:"messageId"`
	Session      performatives.SessionID `json:"sessionId"`
	Sequence     uint64                  `json:"sequenceNumber"`
	Performative string                  `json:"performative"`
	Sender       struct {
		Agent performatives.Agent `json:"agentId"`
	} `json:"sender"`
	Content struct {
		Body jsontext.Value `json:"body"`
	} `json:"content"`
	Integrity struct {
		OnBehalfOf performatives.Agent `json:"onBehalfOf"`
		Receipt    struct {
			At string `json:"acceptedAt"`
		} `json:"receipt"`
	} `json:"integrity"`
}

func readEntry(raw jsontext.Value) (entry, error) {
	e := entry{raw: raw}
	return e, json.Unmarshal(raw, &e)
}

// message is an entry as the caller reads it: its text, and the act as data; to who asked for
// Extension the signed envelope.
func (e entry) message(c call) *a2a.Message {
	m := &a2a.Message{
		ID: string(e.Message), ContextID: string(e.Session), TaskID: a2a.TaskID(e.Session), Role: a2a.MessageRoleAgent,
		Metadata: map[string]any{"performative": e.Performative, "from": string(e.Sender.Agent), "sequenceNumber": e.Sequence},
	}
	if e.Sender.Agent == c.pass.Agent || e.Integrity.OnBehalfOf == c.pass.Agent {
		m.Role = a2a.MessageRoleUser
	}
	if text := e.text(); text != "" {
		m.Parts = append(m.Parts, &a2a.Part{Content: a2a.Text(text), MediaType: textType})
	}
	data := object{"performative": e.Performative, "from": string(e.Sender.Agent), "sequenceNumber": e.Sequence, "at": e.Integrity.Receipt.At}
	if e.Integrity.OnBehalfOf != "" {
		data["onBehalfOf"] = string(e.Integrity.OnBehalfOf)
	}
	kind := jsonType
	var envelope object
	var body any
	if c.asp && json.Unmarshal(e.raw, &envelope) == nil {
		data, kind, m.Extensions = envelope, envelopeType, []string{Extension}
	} else if json.Unmarshal(e.Content.Body, &body) == nil {
		data["body"] = body
	}
	m.Parts = append(m.Parts, &a2a.Part{Content: a2a.Data{Value: data}, MediaType: kind})
	return m
}

// text is what an act says in words, "" if it says nothing.
func (e entry) text() string {
	var body struct {
		Message string         `json:"message"`
		Reason  string         `json:"reason"`
		Subject string         `json:"subject"`
		Summary string         `json:"summary"`
		Data    jsontext.Value `json:"data"`
	}
	if json.Unmarshal(e.Content.Body, &body) != nil {
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
