package performatives

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// plain reads the envelope's fields from its members where each is of the type
// that it should be, and the texts have no escapes. Everything else it leaves to
// the decoder, which then finds the words for what is wrong.
func (w *wireEnvelope) plain(members document) bool {
	texts := new([6]string) // in one piece
	for i := range members {
		v, ok := members[i].value(), true
		switch string(members[i].text[1 : members[i].name-1]) {
		case "version":
			w.Version, ok = plainText(v, &texts[0])
		case "messageId":
			w.MessageID, ok = plainText(v, &texts[1])
		case "sessionId":
			w.SessionID, ok = plainText(v, &texts[2])
		case "timestamp":
			w.Timestamp, ok = plainText(v, &texts[3])
		case "performative":
			w.Performative, ok = plainText(v, &texts[4])
		case "sender":
			ok = w.plainSender(v, &texts[5])
		case "content":
			ok = w.plainContent(v)
		case "constraints":
			w.Constraints = new(Constraints)
			ok = v.Kind() == '{' && unmarshal(v, w.Constraints, "") == nil
		case "sequenceNumber":
			w.SequenceNumber = v
		case "recipient":
			w.Recipient = v
		case "broker":
			w.Broker = v
		case "integrity":
			w.Integrity = v
		}
		if !ok {
			return false
		}
	}
	return true
}

func (w *wireEnvelope) plainSender(v jsontext.Value, id *string) bool {
	var room [2]member
	members, err := split(room[:0], v)
	if err != nil {
		return false
	}
	w.Sender = new(wireSender)
	for _, m := range members {
		ok := true
		switch {
		case m.is("agentId"):
			w.Sender.AgentID, ok = plainText(m.value(), id)
		case m.is("orgId"):
			ok = m.value().Kind() == '"'
		}
		if !ok {
			return false
		}
	}
	return true
}

func (w *wireEnvelope) plainContent(v jsontext.Value) bool {
	var room [3]member
	members, err := split(room[:0], v)
	if err != nil {
		return false
	}
	w.Content = new(wireContent)
	for _, m := range members {
		switch {
		case m.is("body"):
			w.Content.Body = m.value()
		case m.is("context"):
			w.Content.Context = m.value()
		case m.is("mimeType") && m.value().Kind() != '"':
			return false
		}
	}
	return true
}

// plainText reads a text without escapes into a place for it.
func plainText(v jsontext.Value, into *string) (*string, bool) {
	if v.Kind() != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return nil, false
	}
	*into = string(v[1 : len(v)-1])
	return into, true
}
