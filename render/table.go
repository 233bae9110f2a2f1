package render

import (
	"math"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

const columnGap = 2

// table draws rows under a heading. A row that is too wide for a terminal goes
// on below; for a program, which has no width, each row is one line.
func table(s Style, none string, heading []string, rows [][]span) string {
	if s.Width == 0 {
		s.Width = math.MaxInt32
	}
	p := &page{Style: s}
	if len(rows) == 0 {
		p.put(0, 0, hushed(none))
		return p.String()
	}
	widths := make([]int, len(heading))
	for i, h := range heading {
		widths[i] = textWidth(h)
		for _, r := range rows {
			widths[i] = max(widths[i], textWidth(Clean(r[i].text)))
		}
	}
	title := make([]span, len(heading))
	for i, h := range heading {
		title[i] = hushed(h)
	}
	for _, r := range slices.Insert(rows, 0, title) {
		var line []span
		for i, cell := range r {
			if i > 0 {
				pad := widths[i-1] - textWidth(Clean(r[i-1].text)) + columnGap
				line = append(line, said(strings.Repeat(" ", pad)))
			}
			line = append(line, cell)
		}
		p.put(0, 4, line...)
	}
	return p.String()
}

// Sessions lists sessions.
func Sessions(list []api.SessionSummary, s Style) string {
	var rows [][]span
	for _, v := range list {
		names := newCast()
		var parties []string
		for _, a := range v.Parties {
			parties = append(parties, names.of(a).name)
		}
		state := span{v.State.String(), stateInk(v.State.String(), "")}
		if v.Awaiting {
			state.text += " *"
		}
		rows = append(rows, []span{
			said(string(v.Session)), state, said(v.Mode), said(number(float64(v.Messages))),
			hushed(strings.TrimSuffix(whenStamp(v.Updated), " UTC")), said(strings.Join(parties, ", ")), said(v.Purpose),
		})
	}
	text := table(s, "no sessions", []string{"SESSION", "STATE", "MODE", "ACTS", "UPDATED (UTC)", "PARTIES", "PURPOSE"}, rows)
	if slices.ContainsFunc(list, func(v api.SessionSummary) bool { return v.Awaiting }) {
		text += "* waits for you\n"
	}
	return text
}

// Agents lists principals.
func Agents(list []api.Card, s Style) string {
	var rows [][]span
	for _, c := range list {
		trust := "-"
		if c.Registry.TrustScore != nil {
			trust = number(*c.Registry.TrustScore)
		}
		rows = append(rows, []span{
			said(string(c.Agent)), said(kindOf(c)), said(trust), said(c.Name), hushed(strings.Join(c.Capabilities, ", ")),
		})
	}
	return table(s, "no principals", []string{"PRINCIPAL", "KIND", "TRUST", "NAME", "CAPABILITIES"}, rows)
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
	var rows []row
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, row{name: name, value: []span{said(value)}})
		}
	}
	add("name", c.Name)
	add("description", c.Description)
	add("organization", c.Organization)
	add("key", string(c.Key))
	add("capabilities", strings.Join(c.Capabilities, ", "))
	add("protocols", strings.Join(c.Protocols, ", "))
	add("schemas", strings.Join(c.Schemas, ", "))
	if c.MaxTransactionValue != nil {
		add("maximum", strings.Join(present(number(*c.MaxTransactionValue), c.Currency), " "))
	}
	rows = append(rows, rowsOf(memberLeaves("conformance", c.ConformanceLevel))...)
	rows = append(rows, rowsOf(memberLeaves("availability", c.Availability))...)
	if c.Registry.TrustScore != nil {
		add("trust score", number(*c.Registry.TrustScore))
	}
	for _, l := range c.Registry.Limits {
		add("limit", number(l.MaxAmount)+" "+l.Currency)
	}
	for _, d := range c.Registry.Devices {
		add("device", strings.Join(present(string(d.Key), d.Name), "  "))
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

// Schemas lists schemas.
func Schemas(list []api.Schema, s Style) string {
	var rows [][]span
	for _, v := range list {
		by := "parley"
		if v.Kind != "body" {
			by = "operator"
			if v.By != "" {
				by = string(v.By)
			}
		}
		rows = append(rows, []span{said(v.Name), said(v.Kind), hushed(by)})
	}
	return table(s, "no schemas", []string{"SCHEMA", "KIND", "BY"}, rows)
}
