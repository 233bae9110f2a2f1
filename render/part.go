package render

import (
	"strings"

	"github.com/parley-asp/parley/api"
)

// Part lists one part of a session's state, such as proposals.
func Part(v api.SessionView, part string, s Style) string {
	switch part {
	case "participants":
		return participants(v.Participants, s)
	case "delegations":
		return delegations(v.Delegations, s)
	case "authorities":
		return authorities(v.Authorities, s)
	case "deadlines":
		return deadlines(v.Deadlines, s)
	}
	return offers(append(v.Proposals, v.Commitments...), part, s)
}

func participants(list []api.PartyView, s Style) string {
	var rows [][]span
	for _, a := range list {
		rows = append(rows, []span{said(string(a.Agent)), said(a.Role), said(a.Status), hushed(a.Authority), hushed(string(a.OnBehalfOf))})
	}
	return table(s, "no participants", []column{
		{"PRINCIPAL", fixed}, {"ROLE", fixed}, {"STATUS", fixed}, {"AUTHORITY", optional}, {"FOR", flexibleOptional},
	}, rows)
}

func offers(list []api.OfferView, part string, s Style) string {
	var rows [][]span
	for _, o := range list {
		id := o.Proposal
		if id == "" {
			id = o.Commitment
		}
		rows = append(rows, []span{
			said(number(float64(o.Sequence))), said(id), said(o.Status), said(string(o.From)), said(strings.Join(present(o.Subject, o.Type), " · ")), hushed(string(o.Terms)),
		})
	}
	return table(s, "no "+part, []column{
		{"MESSAGE", fixed}, {"ID", flexible}, {"STATUS", fixed}, {"FROM", flexible}, {"SUBJECT", flexibleOptional}, {"TERMS", flexibleOptional},
	}, rows)
}

func delegations(list []api.GrantView, s Style) string {
	var rows [][]span
	for _, g := range list {
		rows = append(rows, []span{
			said(string(g.ID)), said(g.Status), said(g.Authority), said(string(g.To)), said(string(g.OnBehalfOf)), hushed(g.Scope),
		})
	}
	return table(s, "no delegations", []column{
		{"DELEGATION", identifier}, {"STATUS", fixed}, {"AUTHORITY", fixed}, {"TO", flexible}, {"FOR", flexible}, {"SCOPE", flexibleOptional},
	}, rows)
}

func authorities(list []api.AuthorityView, s Style) string {
	var rows [][]span
	for _, a := range list {
		var allows strings.Builder
		for _, part := range granted(&a.RulingsAuthority) {
			allows.WriteString(part.text)
		}
		rows = append(rows, []span{
			said(string(a.Escalation)), said(string(a.OnBehalfOf)), said(strings.TrimPrefix(allows.String(), ", ")), said(number(float64(len(a.Denied)))),
		})
	}
	return table(s, "no authorities", []column{{"ESCALATION", identifier}, {"FOR", flexible}, {"ALLOWS", flexible}, {"DENIED", optional}}, rows)
}

func deadlines(list []api.DeadlineView, s Style) string {
	var rows [][]span
	for _, d := range list {
		ends := "no"
		if d.Ends {
			ends = "yes"
		}
		rows = append(rows, []span{said(d.Code), said(whenStamp(d.At)), said(ends), hushed(d.Ref)})
	}
	return table(s, "no deadlines", []column{{"DEADLINE", fixed}, {"AT", fixed}, {"ENDS THE SESSION", fixed}, {"OF", flexibleOptional}}, rows)
}

// Comments lists the comments of an escalation.
func Comments(list []api.CaseAction, s Style) string {
	p := &page{Style: s}
	p.comments(list, newCast())
	if len(list) == 0 {
		p.put(0, 0, hushed("no comments"))
	}
	return p.String()
}

// Changes lists the terms at stake in an escalation, with what they were.
func Changes(list []api.Change, s Style) string {
	var rows [][]span
	for _, c := range list {
		name := c.Label
		if name == "" {
			name = c.Path
		}
		rows = append(rows, []span{said(name), said(c.Kind), hushed(string(c.Before)), said(string(c.After))})
	}
	return table(s, "no terms", []column{{"TERM", flexible}, {"CHANGE", fixed}, {"BEFORE", flexible}, {"AFTER", flexible}}, rows)
}
