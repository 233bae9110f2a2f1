package performatives

import "github.com/go-json-experiment/json/jsontext"

// fields are the members of an envelope that mean something, the first six of
// them texts. What is absent is nil, and so is a text or an object that is null.
type fields struct {
	version, id, session, timestamp, sender, act          jsontext.Value
	body, context, sequence, recipient, broker, integrity jsontext.Value
	constraints                                           *Constraints
}

// readFields finds them, each of the type that it should be.
func readFields(envelope document) (w fields, err error) {
	for _, f := range envelope {
		v := f.value()
		switch string(f.text[1 : f.name-1]) {
		case "version":
			w.version, err = textAt("/version", v)
		case "messageId":
			w.id, err = textAt("/messageId", v)
		case "sessionId":
			w.session, err = textAt("/sessionId", v)
		case "timestamp":
			w.timestamp, err = textAt("/timestamp", v)
		case "performative":
			w.act, err = textAt("/performative", v)
		case "sender":
			err = w.readSender(v)
		case "content":
			err = w.readContent(v)
		case "constraints":
			if v.Kind() != 'n' {
				w.constraints = new(Constraints)
				err = Unmarshal(v, w.constraints, "/constraints")
			}
		case "sequenceNumber":
			w.sequence = v
		case "recipient":
			w.recipient = v
		case "broker":
			w.broker = v
		case "integrity":
			w.integrity = v
		}
		if err != nil {
			return fields{}, err
		}
	}
	return w, nil
}

func (w *fields) readSender(v jsontext.Value) error {
	var room [2]member
	members, err := objectAt("/sender", v, room[:0])
	for _, f := range members {
		switch {
		case f.is("agentId"):
			w.sender, err = textAt("/sender/agentId", f.value())
		case f.is("orgId"):
			_, err = textAt("/sender/orgId", f.value())
		}
		if err != nil {
			break
		}
	}
	return err
}

func (w *fields) readContent(v jsontext.Value) error {
	var room [3]member
	members, err := objectAt("/content", v, room[:0])
	for _, f := range members {
		switch {
		case f.is("body"):
			w.body = f.value()
		case f.is("context"):
			w.context = f.value()
		case f.is("mimeType"):
			_, err = textAt("/content/mimeType", f.value())
		}
		if err != nil {
			break
		}
	}
	return err
}

// textAt insists on a text, or null.
func textAt(path string, v jsontext.Value) (jsontext.Value, error) {
	switch v.Kind() {
	case '"':
		return v, nil
	case 'n':
		return nil, nil
	default:
		return nil, malformed(path, "want a string")
	}
}

// objectAt takes an object apart; null has no members.
func objectAt(path string, v jsontext.Value, into document) (document, error) {
	switch v.Kind() {
	case '{':
		return split(into, v)
	case 'n':
		return nil, nil
	default:
		return nil, malformed(path, "want an object")
	}
}
