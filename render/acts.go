package render

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// act draws what was said.
func (c *Chat) act(p *page, e transcript.Entry) {
	switch body := e.Message.Body.(type) {
	case *performatives.ProposeBody:
		c.propose(p, e, body)
	case *performatives.CounterBody:
		c.counter(p, e, body)
	case *performatives.AcceptBody:
		c.line(p, e, c.refer(body.ReferenceID))
		p.quote(bodyIndent, body.Reason)
		c.remarks(p, body.Remarks)
	case *performatives.RejectBody:
		c.line(p, e, c.refer(body.ReferenceID), said(": "), span{body.Code, bad}, said(rejection(body)))
		if body.Reason != body.Code {
			p.quote(bodyIndent, body.Reason)
		}
		c.remarks(p, body.Remarks)
	case *performatives.WithdrawBody:
		c.line(p, e, c.refer(body.ReferenceID))
		p.quote(bodyIndent, body.Reason)
	case *performatives.InformBody:
		c.inform(p, e, body)
	case *performatives.QueryBody:
		c.note(body.QueryID, e, "", nil)
		c.line(p, e, c.own(body.QueryID), said(body.QueryType+": "+body.Subject))
		p.rows(bodyIndent, rowsOf(flatten(body.Parameters)))
	case *performatives.ClarifyBody:
		c.clarify(p, e, body)
	case *performatives.ObserveBody:
		c.line(p, e, said(body.Subject), c.about(body.ReferenceID))
		c.value(p, body.Data)
	case *performatives.CommitBody:
		c.commit(p, e, body)
	case *performatives.DelegateBody:
		c.delegate(p, e, body)
	case *performatives.EscalateBody:
		c.escalate(p, e, body)
	case *performatives.CloseBody:
		c.line(p, e, said(strings.Join(present(body.Outcome, body.Reason), ": ")))
		p.quote(bodyIndent, body.Summary)
	default:
		c.line(p, e)
		c.value(p, e.Message.RawBody)
	}
	c.constraints(p, e.Message.Constraints)
}

// line is the first line of an act: its name and the rest.
func (c *Chat) line(p *page, e transcript.Entry, rest ...span) {
	spans := []span{loud(e.Message.ActName), said(" ")}
	p.put(bodyIndent, bodyIndent+2, append(spans, rest...)...)
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

func (c *Chat) about(id string) span {
	if id == "" {
		return span{}
	}
	r := c.refer(id)
	return hushed(", about " + r.text)
}

// value adds any JSON value: a text as a quotation, the rest as rows.
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

func (c *Chat) remarks(p *page, r performatives.Remarks) {
	p.quote(bodyIndent, r.Message)
	if len(r.Assessment) > 0 {
		p.put(bodyIndent, bodyIndent, hushed("assessment"))
		p.rows(bodyIndent, rowsOf(flatten(r.Assessment)))
	}
}

// constraints say what binds whoever answers.
func (c *Chat) constraints(p *page, k performatives.Constraints) {
	var asks []string
	if len(k.AllowedPerformatives) > 0 {
		asks = append(asks, "answer with "+strings.Join(k.AllowedPerformatives, " or "))
	}
	if k.MaxResponseTimeMs != nil {
		asks = append(asks, "hopes for an answer within "+milliseconds(int64(*k.MaxResponseTimeMs)))
	}
	if k.RequiredTrustScore != nil {
		asks = append(asks, "wants a trust score of "+number(*k.RequiredTrustScore)+" or more")
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

func rejection(b *performatives.RejectBody) string {
	switch {
	case b.Terminal:
		return ", final"
	case b.Retryable:
		return ", a revised offer has a chance"
	default:
		return ""
	}
}

func (c *Chat) inform(p *page, e transcript.Entry, b *performatives.InformBody) {
	if answers, ok := b.Answers(); ok {
		c.line(p, e, said("answers about "), c.refer(answers.ReferenceID))
		var rows []row
		for _, a := range answers.Answers {
			rows = append(rows, row{mark: span{"!", good}, name: a.Field, value: []span{said(worded(a.Answer))}})
		}
		p.rows(bodyIndent, rows)
		return
	}
	if ruling, ok := b.Ruling(); ok {
		c.ruling(p, e, ruling)
		return
	}
	c.line(p, e, said(b.Kind()))
	c.value(p, b.Data)
}

func (c *Chat) ruling(p *page, e transcript.Entry, r performatives.RulingData) {
	how := good
	if r.Decision == performatives.Denied {
		how = bad
	}
	c.line(p, e, said("resolution of "), c.refer(r.EscalationID), said(": "), span{r.Decision, how})
	if a := r.Authority; a != nil {
		var bounds []string
		if a.MaxAmount != nil {
			bounds = append(bounds, strings.Join(present("at most "+number(*a.MaxAmount), a.Currency), " "))
		}
		if a.TermPath != "" {
			bounds = append(bounds, "in "+a.TermPath)
		}
		if a.ValidUntil != nil {
			bounds = append(bounds, "until "+when(*a.ValidUntil))
		}
		p.put(bodyIndent, bodyIndent+2, said(strings.Join(bounds, ", ")))
	}
	p.quote(bodyIndent, r.Comment)
}

func (c *Chat) clarify(p *page, e transcript.Entry, b *performatives.ClarifyBody) {
	c.note(string(e.Message.ID), e, "", nil)
	c.line(p, e, c.refer(b.ReferenceID))
	var rows []row
	for _, q := range b.Questions {
		value := []span{said(q.Question)}
		for i, o := range q.Options {
			before := " · "
			if i == 0 {
				before = "  "
			}
			value = append(value, hushed(before+worded(o)))
		}
		rows = append(rows, row{mark: span{"?", warn}, name: q.Field, value: value})
	}
	p.rows(bodyIndent, rows)
	c.remarks(p, b.Remarks)
}

func (c *Chat) delegate(p *page, e transcript.Entry, b *performatives.DelegateBody) {
	c.note(string(e.Message.ID), e, "", nil)
	bounds := b.Authority + " authority"
	if b.ReferenceID != "" {
		bounds += " over " + c.refer(b.ReferenceID).text + " and its counters"
	}
	if b.ValidUntil != nil {
		bounds += ", until " + when(*b.ValidUntil)
	}
	c.line(p, e, said("to "), c.cast.name(b.TargetAgent), said(": "+bounds))
	p.put(bodyIndent, bodyIndent+2, hushed(string(b.TargetAgent)))
	p.quote(bodyIndent, b.Scope)
}

func (c *Chat) escalate(p *page, e transcript.Entry, b *performatives.EscalateBody) {
	c.note(string(e.Message.ID), e, "", nil)
	c.line(p, e, span{b.Reason, warn}, said(", urgency "+b.Urgency), c.about(b.ReferenceID))
	c.value(p, b.Context)
	if b.SuggestedAction != "" {
		p.put(bodyIndent, bodyIndent+2, hushed("suggests"))
		p.quote(bodyIndent, b.SuggestedAction)
	}
}

// commit draws who owes what.
func (c *Chat) commit(p *page, e transcript.Entry, b *performatives.CommitBody) {
	c.note(b.CommitmentID, e, "", nil)
	rest := []span{c.own(b.CommitmentID)}
	if b.ReferenceID != "" {
		rest = append(rest, said("on "), c.refer(b.ReferenceID))
	}
	c.line(p, e, append(rest, hushed(commitment(b)))...)
	if b.Terms != nil {
		for _, o := range b.Terms.Obligations {
			spans := []span{said("• "), c.cast.name(o.Party), said(": " + o.Action)}
			if o.Deadline != nil {
				spans = append(spans, hushed(", by "+when(*o.Deadline)))
			}
			if o.VerificationMethod != "" {
				spans = append(spans, hushed(", verified by "+o.VerificationMethod))
			}
			p.put(bodyIndent, bodyIndent+2, spans...)
		}
		if b.Terms.Penalties != nil {
			if raw, err := json.Marshal(b.Terms.Penalties, json.Deterministic(true)); err == nil {
				p.rows(bodyIndent, rowsOf(appendLeaves(nil, "penalties", raw)))
			}
		}
	}
	if b.Escrow != nil {
		held := strings.Join(present(number(b.Escrow.Amount), b.Escrow.Currency), " ")
		p.put(bodyIndent, bodyIndent+2, said("escrow "+strings.Join(present(held, b.Escrow.ReleaseCondition), ", released when: ")))
	}
	p.quote(bodyIndent, b.Reason)
}

func commitment(b *performatives.CommitBody) string {
	facts := present(b.Outcome, b.Action, b.AuthorityScope)
	if b.Deadline != nil {
		facts = append(facts, "by "+when(*b.Deadline))
	}
	if len(facts) == 0 {
		return ""
	}
	return "  " + strings.Join(facts, ", ")
}

func invitationTerms(terms performatives.Object) (t performatives.InvitationTerms) {
	if json.Unmarshal(terms, &t) != nil {
		return performatives.InvitationTerms{}
	}
	return t
}
