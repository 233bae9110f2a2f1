package inbox

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// sessions is a page of the reader's sessions.
func (i *Inbox) sessions(r *http.Request, who *person) (api.Sessions, error) {
	return ask(r.Context(), i, who.Agent, api.SessionList, api.ListSessions{Cursor: r.URL.Query().Get("cursor")})
}

// A sessionView is one session.
type sessionView struct {
	api.SessionView
	Title        string
	Conversation []entry
	Next         *uint64
}

// Classification is the confidentiality that the session inherits of its parties, in words.
func (v sessionView) Classification() string { return classified(v.CCC) }

// classified is a regulatory classification in words; "" for none.
func classified(ccc jsontext.Value) string {
	var inherited performatives.Regulation
	if len(ccc) == 0 || json.Unmarshal(ccc, &inherited) != nil || inherited.Classification == performatives.Unregulated {
		return ""
	}
	return strings.ReplaceAll(inherited.Classification, "_", " ")
}

func (i *Inbox) session(r *http.Request, who *person) (*sessionView, error) {
	id := performatives.SessionID(r.PathValue("id"))
	view, err := ask(r.Context(), i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		return nil, err
	}
	messages, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: since(r), Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	read := i.newConversation(r.Context(), who, who.Agent.Organisation())
	return &sessionView{view, cmp.Or(oneLine(view.Purpose), "Session"), read.all(messages.Messages), messages.Next}, nil
}

// since returns where a page of a long conversation starts.
func since(r *http.Request) uint64 {
	n, err := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// An entry is one act of a conversation.
type entry struct {
	Number       uint64
	Act          string
	From, Behalf performatives.Agent
	Kind         string // counterparty, ours, human or broker
	Blocks       []render.Block
	At           time.Time
	Hash         performatives.Hash
	Stake        bool
}

// A conversation reads a transcript, entry by entry, from an organisation's point of view.
type conversation struct {
	us performatives.Organisation
	*render.Reader
}

func (i *Inbox) newConversation(ctx context.Context, who *person, us performatives.Organisation) *conversation {
	reader := render.NewReader(i.name, render.Page)
	reader.Labels = i.labels(ctx, who)
	return &conversation{us, reader}
}

func (c *conversation) all(raw []jsontext.Value) []entry {
	all := make([]entry, 0, len(raw))
	for _, data := range raw {
		e, err := transcript.Read(data)
		if err != nil {
			all = append(all, entry{Act: "?", Kind: "counterparty", Blocks: []render.Block{{Quote: string(data)}}})
			continue
		}
		all = append(all, c.entry(e))
	}
	return all
}

func (c *conversation) entry(e transcript.Entry) entry {
	m := e.Message
	v := entry{
		Number: e.Stamp.Sequence, Act: m.ActName, From: m.Sender, Behalf: e.Stamp.OnBehalfOf, Kind: "ours", Blocks: c.Read(e),
		At: stamp(e.Stamp.Receipt.AcceptedAt), Hash: e.Stamp.Hash,
	}
	switch {
	case m.Sender.IsBroker():
		v.Kind = "broker"
	case m.Sender.Organisation() != c.us:
		v.Kind = "counterparty"
	case m.Sender.IsHuman():
		v.Kind = "human"
	}
	return v
}

// maxSchemas is the maximum number of terms schemas that a page reads for labels.
const maxSchemas = 8

// labels returns what terms schemas call terms, and reads each schema once.
func (i *Inbox) labels(ctx context.Context, who *person) func(schema string) map[string]api.Label {
	known := map[string]map[string]api.Label{"": nil}
	return func(name string) map[string]api.Label {
		if found, read := known[name]; read || len(known) > maxSchemas {
			return found
		}
		schema, err := ask(ctx, i, who.Agent, api.SchemaGet, api.SchemaRef{Name: name})
		if err != nil { // it was removed, or the broker is busy: paths are shown
			known[name] = nil
			return nil
		}
		known[name] = api.Labels(schema.Schema)
		return known[name]
	}
}
