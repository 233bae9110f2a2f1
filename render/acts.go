package render

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// act draws an act.
func (c *Chat) act(p *page, e transcript.Entry) {
	if body := e.Message.Body; body == nil {
		c.line(p, e.Message.ActName, nil)
		c.value(p, e.Message.RawBody)
	} else {
		offered := c.offers.Add(e)
		text := body.Text()
		c.line(p, e.Message.ActName, text.Line)
		for _, part := range text.Below {
			c.part(p, part, offered)
		}
	}
	c.constraints(p, e.Message.Constraints)
}

// line draws the first line of an act. The URI of a principal in it follows below.
func (c *Chat) line(p *page, act string, words []performatives.Word) {
	spans := append([]span{loud(act), said(" ")}, c.words(words)...)
	p.put(bodyIndent, bodyIndent+2, spans...)
	for _, w := range words {
		if w.Kind == performatives.Principal {
			p.put(bodyIndent, bodyIndent+2, hushed(w.Text))
		}
	}
}

// words draws a sentence.
func (c *Chat) words(words []performatives.Word) []span {
	var spans []span
	for i, w := range words {
		drawn, lead := c.word(w), said(w.Lead)
		if w.Tone == performatives.Faint {
			lead.ink = faint
		}
		if w.Kind == performatives.OwnID {
			if drawn.text == "" {
				continue
			}
			if i == 0 {
				drawn.text += " "
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

func (c *Chat) word(w performatives.Word) span {
	s := span{w.Text, tones[w.Tone]}
	switch w.Kind {
	case performatives.OwnID:
		return c.own(w.Text)
	case performatives.Reference:
		if s = c.refer(w.Text); w.Tone == performatives.Faint {
			s.ink = faint
		}
	case performatives.Principal:
		return c.cast.name(performatives.Agent(w.Text))
	case performatives.Moment:
		s.text = when(w.At)
	case performatives.Money:
		s.text = strings.Join(present(number(w.Amount), w.Text), " ")
	case performatives.Plain, performatives.Subject, performatives.Code:
	}
	return s
}

// part draws a part below the first line. Terms are drawn as they were compared.
func (c *Chat) part(p *page, part performatives.Part, offered Comparison) {
	switch part := part.(type) {
	case performatives.Prose:
		c.heading(p, part.Name)
		p.quote(bodyIndent, part.Text)
	case performatives.Data:
		c.heading(p, part.Name)
		c.value(p, part.Value)
	case performatives.Terms:
		c.terms(p, offered)
	case performatives.Details:
		spans := c.words(part.Words)
		if part.Of != "" {
			spans = append([]span{said("• "), c.cast.name(part.Of), said(": ")}, spans...)
		}
		p.put(bodyIndent, bodyIndent+2, spans...)
	case performatives.Asked:
		p.rows(bodyIndent, asked(part))
	case performatives.Answered:
		p.rows(bodyIndent, answered(part))
	}
}

func (c *Chat) heading(p *page, name string) {
	if name != "" {
		p.put(bodyIndent, bodyIndent+2, hushed(name))
	}
}

func asked(questions []performatives.Question) []row {
	var rows []row
	for _, q := range questions {
		value := []span{said(q.Question)}
		for i, o := range q.Options {
			before := " · "
			if i == 0 {
				before = "  "
			}
			value = append(value, hushed(before+Value(o)))
		}
		rows = append(rows, row{mark: span{"?", warn}, name: q.Field, value: value})
	}
	return rows
}

func answered(answers []performatives.Answer) []row {
	var rows []row
	for _, a := range answers {
		rows = append(rows, row{mark: span{"!", good}, name: a.Field, value: []span{said(Value(a.Answer))}})
	}
	return rows
}

func present(texts ...string) []string {
	var there []string
	for _, t := range texts {
		if t != "" {
			there = append(there, t)
		}
	}
	return there
}

// value draws a JSON value: a string as a quotation, anything else as rows.
func (c *Chat) value(p *page, v jsontext.Value) {
	switch v.Kind() {
	case 0, 'n':
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			text = v
		}
		p.quote(bodyIndent, string(text))
	default:
		p.rows(bodyIndent, rowsOf(flatten(v)))
	}
}

// constraints draws the constraints on the answer.
func (c *Chat) constraints(p *page, k performatives.Constraints) {
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
	if len(asks) > 0 {
		p.put(bodyIndent, bodyIndent+2, hushed(strings.Join(asks, " · ")))
	}
}

func milliseconds(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(d, zero) {
			d = d[:len(d)-2]
		}
	}
	return d
}

func number(f float64) string {
	raw, err := json.Marshal(f)
	if err != nil {
		return "?"
	}
	return string(raw)
}

func invitationTerms(terms performatives.Object) (t performatives.InvitationTerms) {
	if json.Unmarshal(terms, &t) != nil {
		return performatives.InvitationTerms{}
	}
	return t
}
