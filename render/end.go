package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// End draws the session's state: what was agreed, the mode's part, what is open, and
// the deadlines.
func (c *Chat) End(v api.SessionView) string {
	p := &page{Style: c.Style}
	p.gap()
	state := v.State.String()
	spans := []span{{state, stateInk(state, "")}}
	if v.Closing != "" {
		spans = append(spans, said(": "+v.Closing))
	}
	p.put(0, 2, append(spans, hushed("  since "+whenStamp(v.Updated)))...)
	for _, o := range v.Proposals {
		c.standing(p, v, o, o.Proposal)
	}
	for _, o := range v.Commitments {
		c.standing(p, v, o, o.Commitment)
	}
	if len(v.ModePart) > 0 {
		p.rows(0, rowsOf(appendLeaves(nil, "", v.ModePart)))
	}
	if !v.State.Over() {
		c.running(p, v)
	}
	if v.Truncated {
		p.put(2, 4, span{"shortened: ", warn}, said("the summary is cut"+leftOut(v.Omitted)+"; the conversation has all"))
	}
	return p.String()
}

// leftOut says how many entries of which part are left out.
func leftOut(omitted map[string]int) string {
	text := ""
	for _, part := range slices.Sorted(maps.Keys(omitted)) {
		text += fmt.Sprintf(", without %d of the %s", omitted[part], part)
	}
	return text
}

// standing draws an offer that is accepted or open.
func (c *Chat) standing(p *page, v api.SessionView, o api.OfferView, id string) {
	switch {
	case o.Status == session.Accepted.String():
		p.put(2, 4, span{"agreed ", good}, c.refer(id), said(" of "), c.cast.name(o.From))
	case o.Status == session.Open.String() && !v.State.Over():
		spans := []span{span{"open ", warn}, c.refer(id), said(" of "), c.cast.name(o.From)}
		switch {
		case len(o.Pending) > 0:
			spans = append(spans, said(" awaits answers about "+strings.Join(o.Pending, ", ")))
		case o.To != "":
			spans = append(spans, said(" awaits "), c.cast.name(o.To))
		}
		if o.ValidUntil != "" {
			spans = append(spans, hushed(", until "+whenStamp(o.ValidUntil)))
		}
		p.put(2, 4, spans...)
	}
}

// running draws what an open session waits for: invitations, delegations, an
// escalation and deadlines.
func (c *Chat) running(p *page, v api.SessionView) {
	for _, a := range v.Participants {
		if a.Status == "invited" {
			p.put(2, 4, span{"open ", warn}, said("invitation of "), c.cast.name(a.Agent))
		}
	}
	for _, g := range v.Delegations {
		if g.Status == "active" || g.Status == "offered" {
			p.put(2, 4, c.cast.name(g.To), said(" for "), c.cast.name(g.OnBehalfOf), hushed(", "+g.Authority+" delegation, "+g.Status))
		}
	}
	if e := v.Escalation; e != nil && e.Status == "open" {
		p.put(2, 4, span{"paused ", warn}, c.refer(string(e.ID)),
			said(": a human of "+string(e.Organisation)+" decides by "+whenStamp(e.Deadline)))
	}
	for _, d := range v.Deadlines {
		text := d.Code + " at " + whenStamp(d.At)
		if d.Ends {
			text += ", which ends the session"
		}
		p.put(2, 4, hushed(text))
	}
}
