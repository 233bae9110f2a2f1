package inbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// An entry is one act of a conversation, as text.
type entry struct {
	Number uint64
	Act    string
	Who    string
	Org    string
	URI    performatives.Agent
	Behalf string
	Kind   string // theirs, ours, human or broker
	Line   string // what the act refers to
	Text   []prose
	Pairs  []pair
	Terms  []term // of an offer, those that differ from the offer before
	Rest   string // what is said of the other terms
	At     time.Time
	Hash   string
	Stake  bool
}

type pair struct {
	Name  string
	Value prose
}

// A teller formats a transcript, entry by entry, from an organisation's point of view.
type teller struct {
	us     performatives.Organisation
	offers *render.Offers
	labels func(schema string) map[string]api.Label
	called func(performatives.Agent) string
}

func (i *Inbox) newTeller(ctx context.Context, who *person, us performatives.Organisation) *teller {
	return &teller{us, render.NewOffers(), i.labels(ctx, who), i.called}
}

func (t *teller) all(raw []jsontext.Value) []entry {
	all := make([]entry, 0, len(raw))
	for _, data := range raw {
		e, err := transcript.Read(data)
		if err != nil {
			all = append(all, entry{Act: "?", Who: "unreadable entry", Kind: "theirs", Text: []prose{asProse(string(data))}})
			continue
		}
		all = append(all, t.entry(e))
	}
	return all
}

func (t *teller) entry(e transcript.Entry) entry {
	m := e.Message
	v := entry{
		Number: e.Stamp.Sequence, Act: render.Clean(m.ActName), Who: t.called(m.Sender), Org: organisation(m.Sender), URI: m.Sender,
		Hash: string(e.Stamp.Hash),
	}
	if at, err := e.Stamp.AcceptedAt(); err == nil {
		v.At = at
	}
	if e.Stamp.OnBehalfOf != "" {
		v.Behalf = t.called(e.Stamp.OnBehalfOf)
	}
	switch {
	case strings.HasPrefix(string(m.Sender), "broker://"):
		v.Kind, v.Who, v.Org = "broker", "broker", ""
	case m.Sender.Organisation() != t.us:
		v.Kind = "theirs"
	case m.Sender.IsHuman():
		v.Kind = "human"
	default:
		v.Kind = "ours"
	}
	if m.DecodeBody() != nil {
		v.value(m.RawBody)
		return v
	}
	v.act(m.Body.Text(), t)
	v.compared(t.offers.Add(e), t.labels)
	return v
}

// compared adds an offer's terms, as session show draws them.
func (v *entry) compared(c render.Comparison, labels func(schema string) map[string]api.Label) {
	shown := c.Terms[:min(len(c.Terms), maxPairs)]
	var rest []string
	if more := len(c.Terms) - len(shown); more > 0 {
		rest = append(rest, plural(more, "more term", "more terms"))
	}
	switch before := fmt.Sprintf("%s (#%d)", c.Before, c.Entry); {
	case c.Before == "":
	case len(c.Terms) == 0:
		rest = append(rest, "the same terms as "+before)
	case c.Same > 0:
		rest = append(rest, plural(c.Same, "other term", "other terms")+" as in "+before)
	}
	v.Rest = oneLine(strings.Join(rest, ", "))
	if len(shown) == 0 {
		return
	}
	names := labels(c.Schema)
	for _, t := range shown {
		label := names["terms."+t.Path]
		v.Terms = append(v.Terms, term{
			Path: clean(t.Path), Label: clean(cmp.Or(label.Title, t.Path)), Note: clean(label.Description), Kind: t.Kind,
			Was: asProse(termText(t.Was)), Now: asProse(termText(t.Now)), Delta: t.Change(),
		})
	}
}

// termText formats a term's value: a number in groups of digits, and anything else as
// session show does, which tells "2" from 2.
func termText(v jsontext.Value) string {
	if v.Kind() == '0' {
		return valueText(v)
	}
	return render.Value(v)
}

func (v *entry) text(texts ...string) {
	for _, t := range texts {
		if t != "" {
			v.Text = append(v.Text, asProse(t))
		}
	}
}

func (v *entry) pair(name, value string) {
	if value != "" {
		v.Pairs = append(v.Pairs, pair{render.Clean(name), asProse(value)})
	}
}

// value adds a JSON value: a string as text, an object by its members.
func (v *entry) value(raw jsontext.Value) {
	switch raw.Kind() {
	case 0, 'n':
	case '{':
		v.members("", raw)
	default:
		v.text(valueText(raw))
	}
}

// maxPairs is the maximum number of members shown of one message.
const maxPairs = 60

func (v *entry) members(prefix string, raw jsontext.Value) {
	d := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if _, err := d.ReadToken(); err != nil {
		return
	}
	for d.PeekKind() == '"' && len(v.Pairs) < maxPairs {
		name, err := d.ReadToken()
		if err != nil {
			return
		}
		path := prefix + name.String()
		value, err := d.ReadValue()
		if err != nil {
			return
		}
		if value = value.Clone(); value.Kind() == '{' && len(value) > 2 {
			v.members(path+".", value)
		} else {
			v.pair(path, valueText(value))
		}
	}
}

// act adds an act's first line and its parts.
func (v *entry) act(said performatives.Text, t *teller) {
	v.line(said.Line, t)
	for _, part := range said.Below {
		switch part := part.(type) {
		case performatives.Prose:
			if part.Name == "" {
				v.text(part.Text)
			} else {
				v.pair(part.Name, part.Text)
			}
		case performatives.Data:
			if part.Name == "" {
				v.value(part.Value)
			} else {
				v.members(part.Name+".", part.Value)
			}
		case performatives.Terms: // compared shows them
		case performatives.Details:
			v.details(part, t)
		case performatives.Asked:
			for _, q := range part {
				v.pair(q.Field, q.Question)
			}
		case performatives.Answered:
			for _, a := range part {
				v.pair(a.Field, valueText(a.Answer))
			}
		}
	}
}

// line joins the facts of an act's first line, the subject first and its own id last.
// Times become pairs.
func (v *entry) line(words []performatives.Word, t *teller) {
	var subject, facts, own []string
	for _, w := range words {
		lead, text := strings.TrimLeft(w.Lead, " :,"), t.word(w)
		switch {
		case w.Kind == performatives.Moment:
			v.pair(w.Name, text)
		case w.Kind == performatives.Subject:
			subject = append(subject, text)
		case continues(w) && len(facts) > 0:
			facts[len(facts)-1] += w.Lead + text
		case w.Kind == performatives.OwnID:
			own = append(own, lead+text)
		default:
			facts = append(facts, lead+text)
		}
	}
	v.Line = oneLine(strings.Join(slices.Concat(subject, facts, own), " · "))
}

// continues reports whether a word belongs to the previous one.
func continues(w performatives.Word) bool {
	return strings.HasPrefix(w.Lead, " ") && !strings.HasPrefix(w.Lead, "  ")
}

// details adds facts about a principal as one pair, and others as a pair each.
func (v *entry) details(d performatives.Details, t *teller) {
	var sentence strings.Builder
	for _, w := range d.Words {
		sentence.WriteString(w.Lead + t.word(w))
		if d.Of == "" && w.Name != "" {
			v.pair(w.Name, t.word(w))
		}
	}
	if d.Of != "" {
		v.pair(t.called(d.Of), sentence.String())
	}
}

// word is the text of a word. What a reference names is told by its entry's number.
func (t *teller) word(w performatives.Word) string {
	switch w.Kind {
	case performatives.Reference:
		if text, known := t.offers.Refer(w.Text, false); known {
			return text
		}
	case performatives.Code:
		return reasonText(w.Text)
	case performatives.Moment:
		return moment(w.At)
	case performatives.Money:
		return money(w.Amount, w.Text)
	case performatives.Plain, performatives.Subject, performatives.OwnID, performatives.Principal:
	}
	return w.Text
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
