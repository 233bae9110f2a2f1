package inbox

import (
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

// classified is a regulatory classification in words; "" for none.
func classified(ccc jsontext.Value) string {
	var inherited performatives.Regulation
	if len(ccc) == 0 || json.Unmarshal(ccc, &inherited) != nil || inherited.Classification == performatives.Unregulated {
		return ""
	}
	return strings.ReplaceAll(inherited.Classification, "_", " ")
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
	About        string // the offer, the delegation or the escalation that it refers to
	Decision     string // of a human
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

func (c *conversation) all(raw []jsontext.Value, parts map[performatives.MessageID]performatives.SealedParts) []entry {
	all := make([]entry, 0, len(raw))
	for _, data := range raw {
		e, err := transcript.ReadOpened(data, parts)
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
	if m.Body != nil {
		v.About = m.Body.Refers()
		if inform, is := m.Body.(*performatives.InformBody); is && m.Sender.IsHuman() {
			ruling, _ := inform.Ruling()
			v.Decision = ruling.Decision
		}
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
