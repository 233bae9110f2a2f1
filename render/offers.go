package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// propose draws an offer; the terms as they differ from the newest offer of the
// same type, if there is one that has any term in common.
func (c *Chat) propose(p *page, e transcript.Entry, b *performatives.ProposeBody) {
	opening := b.Type == performatives.SessionInvitation
	before := c.newest[b.Type]
	c.note(b.ProposalID, e, b.Type, b.Terms)
	c.newest[b.Type] = b.ProposalID
	if opening {
		c.invites = b.ProposalID
	}
	c.line(p, e, c.own(b.ProposalID), said(b.Type+": "+b.Subject))
	c.terms(p, before, b.ProposalID, opening)
	c.offered(p, b.Schema, b.ValidUntil != nil, func() string { return when(*b.ValidUntil) })
	c.remarks(p, b.Remarks)
}

// counter draws an offer that replaces another one, as they differ.
func (c *Chat) counter(p *page, e transcript.Entry, b *performatives.CounterBody) {
	typ := b.Type
	if typ == "" {
		typ = c.refs[b.ReferenceID].typ
	}
	c.note(b.ProposalID, e, typ, b.Terms)
	c.newest[typ] = b.ProposalID
	opening := b.ReferenceID == c.invites
	if opening {
		c.invites = b.ProposalID
	}
	rest := []span{c.refer(b.ReferenceID)}
	if own := c.own(b.ProposalID); own.text != "" {
		rest = append(rest, said(" with "), loud(b.ProposalID))
	}
	if b.Subject != "" {
		rest = append(rest, said(": "+b.Subject))
	}
	c.line(p, e, rest...)
	c.terms(p, b.ReferenceID, b.ProposalID, opening)
	c.offered(p, b.Schema, b.ValidUntil != nil, func() string { return when(*b.ValidUntil) })
	p.quote(bodyIndent, b.Reason)
	c.remarks(p, b.Remarks)
}

func (c *Chat) offered(p *page, schema string, ends bool, end func() string) {
	var facts []string
	if schema != "" {
		facts = append(facts, "schema "+schema)
	}
	if ends {
		facts = append(facts, "valid until "+end())
	}
	if len(facts) > 0 {
		p.put(bodyIndent, bodyIndent+2, hushed(strings.Join(facts, " · ")))
	}
}

// terms draws the terms of one offer against those of another.
func (c *Chat) terms(p *page, before, now string, invitation bool) {
	after := c.refs[now].terms
	old, has := c.refs[before]
	if invitation {
		after, old.terms = readable(after), readable(old.terms)
	}
	if !has || before == now || !overlap(old.terms, after) {
		p.rows(bodyIndent, rowsOf(after))
		return
	}
	rows, same := differences(old.terms, after)
	p.rows(bodyIndent, rows)
	switch {
	case len(rows) == 0:
		p.put(bodyIndent+2, bodyIndent+2, hushed("the same terms as "+c.refer(before).text))
	case same > 0:
		p.put(bodyIndent+2, bodyIndent+2, hushed(count(same, "other term", "other terms")+" as in "+c.refer(before).text))
	}
}

// overlap tells whether two offers have any term in common.
func overlap(a, b []leaf) bool {
	paths := map[string]bool{}
	for _, l := range a {
		paths[l.path] = true
	}
	return slices.ContainsFunc(b, func(l leaf) bool { return paths[l.path] })
}

// readable are an invitation's terms for people: milliseconds as durations, and
// without the participants, whom the heading names.
func readable(terms []leaf) []leaf {
	var shown []leaf
	for _, l := range terms {
		switch l.path {
		case "participants":
			continue
		case "maxDuration", "invitationTimeoutMs":
			if ms, err := strconv.ParseInt(string(l.json), 10, 64); err == nil {
				l.json = jsontext.Value(strconv.Quote(milliseconds(ms)))
			}
		}
		shown = append(shown, l)
	}
	return shown
}
