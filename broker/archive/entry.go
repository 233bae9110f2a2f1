package archive

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
)

// An Entry is an entry as it is stored: the bytes that everybody gets, the parts that only the sender's
// own organisation gets (PROTOCOL.md §7), and the routes with their names, which nobody gets.
type Entry struct {
	Data   []byte
	Sealed string // the parts as JSON, "" for none
	Routes string // as JSON, "" for none
}

// EntryOf is the entry that a message of the transcripts' stream, or of an inbox, holds.
func EntryOf(m store.Message) Entry {
	return Entry{m.Data, m.Header.Get(api.SealedHeader), m.Header.Get(api.RoutesHeader)}
}

// Beside is what a message has beside the entry.
func (e Entry) Beside() store.Header {
	beside := store.Header{}
	if e.Sealed != "" {
		beside.Set(api.SealedHeader, e.Sealed)
	}
	if e.Routes != "" {
		beside.Set(api.RoutesHeader, e.Routes)
	}
	return beside
}

// Parts open the entry's sealed members.
func (e Entry) Parts() (performatives.SealedParts, error) {
	if e.Sealed == "" {
		return nil, nil
	}
	return performatives.ReadParts(jsontext.Value(e.Sealed))
}

// Read reads the entry, and opens what is sealed in it.
func (e Entry) Read() (transcript.Entry, error) {
	read, err := transcript.Read(e.Data)
	if err == nil && e.Routes != "" {
		err = json.Unmarshal([]byte(e.Routes), &read.Stamp.Routes)
	}
	if err != nil || e.Sealed == "" {
		return read, err
	}
	parts, err := e.Parts()
	if err == nil {
		err = read.Message.Open(parts)
	}
	return read, err
}

// A line is an entry with its parts in the archive. No entry begins like one: its content would come
// before its envelope.
type line struct {
	Envelope jsontext.Value `json:"envelope"`
	Sealed   string         `json:"sealed,omitzero"`
	Routes   string         `json:"routes,omitzero"`
}

const lineStart = `{"envelope":`

// line writes the entry as the archive has it.
func (e Entry) line() ([]byte, error) {
	if e.Sealed == "" && e.Routes == "" {
		return e.Data, nil
	}
	return json.Marshal(line{e.Data, e.Sealed, e.Routes})
}

// Size is how many bytes are stored of it.
func (e Entry) Size() int { return len(e.Data) + len(e.Sealed) + len(e.Routes) }

func readLine(data []byte) (Entry, error) {
	if len(data) < len(lineStart) || string(data[:len(lineStart)]) != lineStart {
		return Entry{Data: data}, nil
	}
	var l line
	err := json.Unmarshal(data, &l)
	return Entry{l.Envelope, l.Sealed, l.Routes}, err
}

// OwnerOf is the organisation that may open what is sealed in an entry.
func OwnerOf(e transcript.Entry) performatives.Organisation {
	if e.Stamp.OnBehalfOf != "" {
		return e.Stamp.OnBehalfOf.Organisation()
	}
	return e.Message.Sender.Organisation()
}

// Opens say what is sealed that a reader may open: all of some organisations, and single messages.
type Opens struct {
	Of       api.Opens    // nil is none
	Unsealed api.Unsealed // nil is none
}

func (o Opens) opens(e transcript.Entry) bool {
	return o.Of != nil && o.Of(OwnerOf(e)) || o.Unsealed != nil && o.Unsealed(escalationOf(e.Message), e.Message.Sender)
}

// escalationOf is the escalation that a message opened, or about which it is a ruling.
func escalationOf(m *performatives.Message) escalation.ID {
	if m.Body == nil && m.DecodeBody() != nil {
		return ""
	}
	if inform, ok := m.Body.(*performatives.InformBody); ok {
		ruling, _ := inform.Ruling()
		return escalation.ID(ruling.EscalationID)
	}
	return escalation.ID(m.ID)
}

// shown adds the entry's parts to a page, if its reader may open them.
func (e Entry) shown(page *api.Messages, opens Opens) error {
	if e.Sealed == "" || opens.Of == nil && opens.Unsealed == nil {
		return nil
	}
	read, err := e.Read()
	if err != nil || !opens.opens(read) {
		return err
	}
	if page.Sealed == nil {
		page.Sealed = map[performatives.MessageID]performatives.SealedParts{}
	}
	page.Sealed[read.Message.ID] = read.Message.Parts
	return nil
}
