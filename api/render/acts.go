package render

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// A Reader words the acts of a transcript, entry by entry. Chat draws its blocks as
// text, and the pages for people as HTML.
type Reader struct {
	Name   func(performatives.Agent) Span           // what a principal is called
	Labels func(schema string) map[string]api.Label // of the terms of a terms schema; nil for none
	Paper  Paper
	offers *offers
	asked  map[string]string // the offer that each ESCALATE names
}

// Paper is what the words stand on.
type Paper uint8

// The kinds of Paper.
const (
	Terminal Paper = iota // numbers and times as programs write them
	Full                  // the same, with every id in full
	Page                  // numbers in groups of digits, times to the minute
)

// NewReader returns a Reader of a new transcript.
func NewReader(name func(performatives.Agent) Span, paper Paper) *Reader {
	return &Reader{Name: name, Paper: paper, offers: newOffers(), asked: map[string]string{}}
}

// A Block is one part of an act: a sentence, a quotation, rows or terms, under a name
// or none.
type Block struct {
	Name  string
	Line  []Span
	Quote string // free text of the sender
	Rows  []Row
	Terms []Term // of an offer: those that differ from the offer before, or all
	Rest  string // what is said of the other terms
}

// Text is the sentence without its inks.
func (b Block) Text() string { return joined(b.Line) }

// mostRows is the maximum number of rows or terms of a block on a page.
const mostRows = 60

// Read words the next entry. The first block is the sentence that follows the act.
func (r *Reader) Read(e transcript.Entry) []Block {
	m := e.Message
	if m.Body == nil && m.DecodeBody() != nil { // shown as JSON
		return r.Paper.fit(append(r.Paper.value("", m.RawBody), r.constraints(m.Constraints)...))
	}
	offered := r.offers.add(e)
	text := m.Body.Text()
	blocks := []Block{{Line: r.words(text.Line)}}
	for _, w := range text.Line {
		if w.Kind == performatives.Principal && r.Paper != Page { // a page has it as a title
			blocks = append(blocks, Block{Line: []Span{hushed(w.Text)}})
		}
	}
	for _, part := range text.Below {
		blocks = append(blocks, r.part(part, offered)...)
	}
	blocks = append(blocks, r.free(e)...)
	blocks = append(blocks, r.constraints(m.Constraints)...)
	return r.Paper.fit(blocks)
}

// fit leaves out what is too much for a page. Text is cut by its lines.
func (p Paper) fit(blocks []Block) []Block {
	if p != Page {
		return blocks
	}
	for i := range blocks {
		b := &blocks[i]
		if more := len(b.Terms) - mostRows; more > 0 {
			b.Terms, b.Rest = b.Terms[:mostRows], strings.Join(present(Count(more, "more term", "more terms"), b.Rest), ", ")
		}
		b.Rows = b.Rows[:min(len(b.Rows), mostRows)]
	}
	return blocks
}

// free words what an approval leaves free of the offer at stake.
func (r *Reader) free(e transcript.Entry) []Block {
	if body, asks := e.Message.Body.(*performatives.EscalateBody); asks {
		r.asked[string(e.Message.ID)] = body.ReferenceID
	}
	inform, is := e.Message.Body.(*performatives.InformBody)
	if !is {
		return nil
	}
	ruling, is := inform.Ruling()
	about, asked := r.asked[ruling.EscalationID]
	_, sealed := e.Message.Digests()["authority"]
	if !is || !asked || !escalation.Approves(ruling.Decision) || ruling.Authority == nil && sealed {
		return nil
	}
	if r.offers.refs[about].shown && ruling.Authority.Boundless() {
		return []Block{{Line: []Span{said("exactly as it was shown")}}}
	}
	if ruling.Authority == nil {
		return []Block{{Line: []Span{said("no bound")}}}
	}
	var of AtStake
	at := r.offers.refs[about]
	for _, l := range at.terms {
		of.Paths = append(of.Paths, "terms."+l.path)
	}
	if r.Labels != nil {
		labels := r.Labels(at.schema)
		of.Label = func(path string) string { return cmp.Or(labels[path].Title, path) }
	}
	if _, free := r.Paper.Grant(ruling.Authority, of); free != "" {
		return []Block{{Line: []Span{said(free)}}}
	}
	return nil
}

// words draws a sentence.
func (r *Reader) words(words []performatives.Word) []Span {
	var spans []Span
	for i, w := range words {
		drawn, lead := r.word(w), said(w.Lead)
		if w.Tone == performatives.Faint {
			lead.ink = faint
		}
		if w.Kind == performatives.OwnID {
			if drawn.Text == "" {
				continue
			}
			if i == 0 {
				drawn.Text += " "
			}
		}
		spans = append(spans, lead, drawn)
	}
	return spans
}

// tones maps tones to inks.
var tones = map[performatives.Tone]ink{
	performatives.Good: good, performatives.Bad: bad, performatives.Warning: warn, performatives.Faint: faint,
}

func (r *Reader) word(w performatives.Word) Span {
	s := Span{w.Text, tones[w.Tone]}
	switch w.Kind {
	case performatives.OwnID: // if it is short
		if s = loud(w.Text); r.Paper != Full && len(w.Text) > shortID {
			return Span{}
		}
	case performatives.Reference:
		if s = r.refer(w.Text); w.Tone == performatives.Faint {
			s.ink = faint
		}
	case performatives.Principal:
		return r.Name(performatives.Agent(w.Text))
	case performatives.Moment:
		if s.Text = when(w.At); r.Paper == Page {
			s.Text = Moment(w.At)
		}
	case performatives.Money:
		s.Text = r.Paper.money(w.Amount, w.Text)
	case performatives.Code:
		if r.Paper == Page {
			s.Text = worded(w.Text)
		}
	case performatives.Plain, performatives.Subject:
	}
	return s
}

// refer draws a reference: the number of the entry, and the id if it is short.
func (r *Reader) refer(id string) Span {
	text, known := r.offers.refer(id, r.Paper == Full)
	switch {
	case known:
		return loud(text)
	case id == "":
		return hushed("nothing")
	case r.Paper == Page:
		return loud(id)
	}
	return loud(short(Clean(id), shortID))
}

// shortID is longer than ids that people choose, and shorter than a UUID.
const shortID = 24

// part words a part below the first line. Terms are drawn as they were compared.
func (r *Reader) part(part performatives.Part, offered comparison) []Block {
	switch part := part.(type) {
	case performatives.Prose:
		return []Block{{Name: part.Name, Quote: part.Text}}
	case performatives.Data:
		return r.Paper.value(part.Name, part.Value)
	case performatives.Terms:
		return []Block{r.terms(offered)}
	case performatives.Details:
		spans := r.words(part.Words)
		if part.Of != "" {
			spans = append([]Span{said("• "), r.Name(part.Of), said(": ")}, spans...)
		}
		return []Block{{Line: spans}}
	case performatives.Asked:
		return []Block{{Rows: asked(part)}}
	case performatives.Answered:
		return []Block{{Rows: r.Paper.answered(part)}}
	}
	return nil
}

// terms words an offer's terms as they were compared.
func (r *Reader) terms(offered comparison) Block {
	b := Block{Terms: offered.Terms}
	if r.Labels != nil && len(b.Terms) > 0 {
		labels := r.Labels(offered.Schema)
		for i := range b.Terms {
			t := &b.Terms[i]
			t.Label, t.Note = labels["terms."+t.Path].Title, labels["terms."+t.Path].Description
		}
	}
	switch {
	case offered.Before == "":
	case len(offered.Terms) == 0:
		b.Rest = "the same terms as " + r.refer(offered.Before).Text
	case offered.Same > 0:
		b.Rest = Count(offered.Same, "other term", "other terms") + " as in " + r.refer(offered.Before).Text
	}
	return b
}

func asked(questions []performatives.Question) []Row {
	var rows []Row
	for _, q := range questions {
		value := []Span{said(q.Question)}
		for i, o := range q.Options {
			before := " · "
			if i == 0 {
				before = "  "
			}
			value = append(value, hushed(before+Value(o)))
		}
		rows = append(rows, Row{Mark: Span{"?", warn}, Name: q.Field, Value: value})
	}
	return rows
}

func (p Paper) answered(answers []performatives.Answer) []Row {
	var rows []Row
	for _, a := range answers {
		rows = append(rows, Row{Mark: Span{"!", good}, Name: a.Field, Value: []Span{said(p.text(a.Answer))}})
	}
	return rows
}

// Blocks words a JSON value.
func (p Paper) Blocks(v jsontext.Value) []Block { return p.fit(p.value("", v)) }

// value words a JSON value: a string as a quotation, anything else as rows.
func (p Paper) value(name string, v jsontext.Value) []Block {
	switch v.Kind() {
	case 0, 'n':
		return nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			text = v
		}
		return []Block{{Name: name, Quote: string(text)}}
	}
	b := Block{Name: name}
	for _, l := range flatten(v) {
		b.Rows = append(b.Rows, Row{Name: l.path, Value: []Span{said(p.text(l.json))}})
	}
	return []Block{b}
}

// money formats an amount with its currency.
func (p Paper) money(n float64, currency string) string {
	if p == Page {
		return Money(n, currency)
	}
	return strings.Join(present(cents(number(n)), currency), " ")
}

// text formats a value.
func (p Paper) text(v jsontext.Value) string {
	if p == Page {
		return PageValue(v)
	}
	return Value(v)
}

// block draws a block as text.
func (p *page) block(b Block) {
	if b.Name != "" {
		p.put(bodyIndent, bodyIndent+2, hushed(b.Name))
	}
	if len(b.Line) > 0 {
		p.put(bodyIndent, bodyIndent+2, b.Line...)
	}
	p.quote(bodyIndent, b.Quote)
	p.rows(bodyIndent, b.Rows)
	p.rows(bodyIndent, termRows(b.Terms))
	if b.Rest != "" {
		p.put(bodyIndent+2, bodyIndent+2, hushed(b.Rest))
	}
}

// constraints words the constraints on the answer.
func (r *Reader) constraints(k performatives.Constraints) []Block {
	var asks []string
	if len(k.AllowedPerformatives) > 0 {
		asks = append(asks, "answer with "+strings.Join(k.AllowedPerformatives, " or "))
	}
	if k.MaxResponseTimeMs != nil {
		asks = append(asks, "asks for an answer within "+milliseconds(int64(*k.MaxResponseTimeMs)))
	}
	if k.RequiredTrustScore != nil {
		asks = append(asks, "requires a trust score of "+number(*k.RequiredTrustScore)+" or more")
	}
	if len(asks) == 0 {
		return nil
	}
	return []Block{{Line: []Span{hushed(strings.Join(asks, " · "))}}}
}

func invitationTerms(terms performatives.Object) (t performatives.InvitationTerms) {
	if json.Unmarshal(terms, &t) != nil {
		return performatives.InvitationTerms{}
	}
	return t
}
