package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Sessions lists sessions.
func Sessions(list []api.SessionSummary, s Style) string {
	var rows [][]Span
	for _, v := range list {
		names := newNamer()
		var parties []string
		for _, a := range v.Parties {
			parties = append(parties, names.of(a).name)
		}
		state := Span{v.State.String(), stateInk(v.State.String(), "")}
		if v.Awaiting {
			state.Text += " *"
		}
		rows = append(rows, []Span{
			said(string(v.Session)), state, said(v.Mode), said(number(float64(v.Messages))),
			hushed(strings.TrimSuffix(whenStamp(v.Updated), " UTC")), said(strings.Join(parties, ", ")), said(v.Purpose),
		})
	}
	text := table(s, "no sessions", []column{
		{"SESSION", identifier}, {"STATE", fixed}, {"MODE", optional}, {"ACTS", fixed}, {"UPDATED (UTC)", optional}, {"PARTIES", flexible}, {"PURPOSE", flexible},
	}, rows)
	if slices.ContainsFunc(list, func(v api.SessionSummary) bool { return v.Awaiting }) {
		text += "* awaits your answer\n"
	}
	return text
}

// Agents lists principals.
func Agents(list []api.Card, s Style) string {
	var rows [][]Span
	for _, c := range list {
		trust := "-"
		if c.Registry.TrustScore != nil {
			trust = number(*c.Registry.TrustScore)
		}
		rows = append(rows, []Span{
			said(string(c.Agent)), said(kindOf(c)), said(availabilityOf(c)), said(trust), said(c.Name), hushed(strings.Join(c.Capabilities, ", ")),
		})
	}
	return table(s, "no principals", []column{
		{"PRINCIPAL", fixed}, {"KIND", fixed}, {"SEEN (UTC)", optional}, {"TRUST", optional}, {"NAME", flexibleOptional}, {"CAPABILITIES", flexibleOptional},
	}, rows)
}

// availabilityOf is online, or when an agent was last seen.
func availabilityOf(c api.Card) string {
	switch online, last := c.Available(); {
	case online:
		return api.Online
	case !last.IsZero():
		return strings.TrimSuffix(when(last), " UTC")
	}
	return "-"
}

func kindOf(c api.Card) string {
	switch {
	case c.Registry.Auditor:
		return c.Kind + ", auditor"
	case c.Registry.MayDecide:
		return c.Kind + ", may decide"
	}
	return c.Kind
}

// Card shows one principal.
func Card(c api.Card, s Style) string {
	p := &page{Style: s}
	p.put(0, 2, loud(string(c.Agent)), said("  "), said(kindOf(c)))
	var rows []Row
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, fact(name, value))
		}
	}
	add("name", c.Name)
	add("description", c.Description)
	add("organization", c.Organization)
	add("key", string(c.Key))
	add("did", c.Registry.DID)
	add("capabilities", strings.Join(c.Capabilities, ", "))
	add("protocols", strings.Join(c.Protocols, ", "))
	add("schemas", strings.Join(c.Schemas, ", "))
	if c.MaxTransactionValue != nil {
		add("maximum", strings.Join(present(number(*c.MaxTransactionValue), c.Currency), " "))
	}
	rows = append(rows, rowsOf(memberLeaves("conformance", c.ConformanceLevel))...)
	rows = append(rows, rowsOf(memberLeaves("availability", c.Availability))...)
	for _, name := range slices.Sorted(maps.Keys(c.Extra)) {
		rows = append(rows, rowsOf(memberLeaves("extra."+name, c.Extra[name]))...)
	}
	if c.DomainVerified && c.Registry.Domain != nil {
		add("domain", "verified by "+c.Registry.Domain.By+", "+whenStamp(c.Registry.Domain.At))
	}
	if c.Registry.TrustScore != nil {
		add("trust score", number(*c.Registry.TrustScore))
	}
	for _, l := range c.Registry.Limits {
		add("limit", number(l.MaxAmount)+" "+l.Currency)
	}
	if away := c.Registry.Away; away != nil {
		add("away", fmt.Sprintf("from %s until %s, and %s stands in", when(away.From), when(away.Until), away.To))
	}
	for _, d := range c.Registry.Devices {
		add("device", strings.Join(present(string(d.Key), d.Name, d.Custody), "  "))
	}
	if c.Registry.RegisteredAt != "" {
		add("registered", whenStamp(c.Registry.RegisteredAt))
	}
	p.rows(0, rows)
	return p.String()
}

func memberLeaves(name string, v performatives.Object) []leaf {
	if len(v) == 0 {
		return nil
	}
	return appendLeaves(nil, name, v)
}

// Tokens lists tokens.
func Tokens(list []api.Token, s Style) string {
	var rows [][]Span
	for _, t := range list {
		may := "act"
		if t.ReadOnly {
			may = "read"
		}
		rows = append(rows, []Span{said(t.ID), said(string(t.Agent)), said(may), said(orNever(t.LastUsed)), said(orNever(t.Expires)), hushed(t.Name)})
	}
	return table(s, "no tokens", []column{
		{"TOKEN", fixed}, {"PRINCIPAL", flexible}, {"MAY", optional}, {"LAST USED", optional}, {"EXPIRES", optional}, {"NAME", flexibleOptional},
	}, rows)
}

func orNever(stamp string) string {
	if stamp == "" {
		return "never"
	}
	return whenStamp(stamp)
}

// Schemas lists schemas.
func Schemas(list []api.Schema, s Style) string {
	var rows [][]Span
	for _, v := range list {
		by := "parley"
		if v.Kind == "terms" {
			by = "operator"
			if v.By != "" {
				by = string(v.By)
			}
		}
		rows = append(rows, []Span{said(v.Name), said(v.Kind), hushed(by)})
	}
	return table(s, "no schemas", []column{{"SCHEMA", fixed}, {"KIND", fixed}, {"BY", flexible}}, rows)
}

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
	return offerTable(append(v.Proposals, v.Commitments...), part, s)
}

func participants(list []api.PartyView, s Style) string {
	var rows [][]Span
	for _, a := range list {
		rows = append(rows, []Span{said(string(a.Agent)), said(a.Role), said(a.Status), hushed(a.Authority), hushed(string(a.OnBehalfOf))})
	}
	return table(s, "no participants", []column{
		{"PRINCIPAL", fixed}, {"ROLE", fixed}, {"STATUS", fixed}, {"AUTHORITY", optional}, {"FOR", flexibleOptional},
	}, rows)
}

func offerTable(list []api.OfferView, part string, s Style) string {
	var rows [][]Span
	for _, o := range list {
		id := o.Proposal
		if id == "" {
			id = o.Commitment
		}
		rows = append(rows, []Span{
			said(number(float64(o.Sequence))), said(id), said(o.Status), said(string(o.From)), said(strings.Join(present(o.Subject, o.Type), " · ")), hushed(string(o.Terms)),
		})
	}
	return table(s, "no "+part, []column{
		{"MESSAGE", fixed}, {"ID", flexible}, {"STATUS", fixed}, {"FROM", flexible}, {"SUBJECT", flexibleOptional}, {"TERMS", flexibleOptional},
	}, rows)
}

func delegations(list []api.GrantView, s Style) string {
	var rows [][]Span
	for _, g := range list {
		rows = append(rows, []Span{
			said(string(g.ID)), said(g.Status), said(g.Authority), said(string(g.To)), said(string(g.OnBehalfOf)), hushed(g.Scope),
		})
	}
	return table(s, "no delegations", []column{
		{"DELEGATION", identifier}, {"STATUS", fixed}, {"AUTHORITY", fixed}, {"TO", flexible}, {"FOR", flexible}, {"SCOPE", flexibleOptional},
	}, rows)
}

func authorities(list []api.AuthorityView, s Style) string {
	var rows [][]Span
	for _, a := range list {
		allows := ""
		if !a.Empty() {
			allows = Allows(&a.RulingsAuthority, AtStake{})
		}
		rows = append(rows, []Span{
			said(string(a.Escalation)), said(string(a.OnBehalfOf)), said(allows), said(number(float64(len(a.Denied)))),
		})
	}
	return table(s, "no authorities", []column{{"ESCALATION", identifier}, {"FOR", flexible}, {"ALLOWS", flexible}, {"DENIED", optional}}, rows)
}

func deadlines(list []api.DeadlineView, s Style) string {
	var rows [][]Span
	for _, d := range list {
		ends := "no"
		if d.Ends {
			ends = "yes"
		}
		rows = append(rows, []Span{said(d.Code), said(whenStamp(d.At)), said(ends), hushed(d.Ref)})
	}
	return table(s, "no deadlines", []column{{"DEADLINE", fixed}, {"AT", fixed}, {"ENDS THE SESSION", fixed}, {"OF", flexibleOptional}}, rows)
}

// Comments lists the comments of an escalation.
func Comments(list []api.CaseAction, s Style) string {
	p := &page{Style: s}
	p.comments(list, newNamer())
	if len(list) == 0 {
		p.put(0, 0, hushed("no comments"))
	}
	return p.String()
}

// Changes lists the terms at stake in an escalation, with what they were.
func Changes(list []api.Change, s Style) string {
	var rows [][]Span
	for _, c := range list {
		name := c.Label
		if name == "" {
			name = c.Path
		}
		rows = append(rows, []Span{said(name), said(c.Kind), hushed(string(c.Before)), said(string(c.After))})
	}
	return table(s, "no terms", []column{{"TERM", flexible}, {"CHANGE", fixed}, {"BEFORE", flexible}, {"AFTER", flexible}}, rows)
}
