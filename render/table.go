package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

const (
	columnGap = 2
	// idPrefix is how much of a UUIDv7 a narrow table shows: the time and 12 random bits.
	idPrefix = len("019478a3-7b2c-7def")
	// minFlexible is the narrowest that a flexible column becomes.
	minFlexible = 8
)

// A column of a table. A table that is too wide for a terminal shortens its ids, then
// truncates flexible columns, then omits optional columns, rightmost first.
type column struct {
	title string
	kind  columnKind
}

type columnKind uint8

const (
	fixed columnKind = iota
	identifier
	flexible
	optional         // omitted if necessary
	flexibleOptional // truncated or omitted
)

func (k columnKind) flexes() bool   { return k == flexible || k == flexibleOptional }
func (k columnKind) optional() bool { return k == optional || k == flexibleOptional }

// table formats rows under a heading. Without a width, for a program, cells are
// complete. With Full, rows that are too wide continue on the next line.
func table(s Style, none string, columns []column, rows [][]span) string {
	if s.Width == 0 {
		s.Width = math.MaxInt32
	}
	p := &page{Style: s}
	if len(rows) == 0 {
		p.put(0, 0, hushed(none))
		return p.String()
	}
	for _, r := range rows {
		for i := range r {
			r[i].text = Clean(r[i].text)
		}
	}
	if !s.Full {
		columns, rows = fitted(p.width(), columns, rows)
	}
	widths := natural(columns, rows)
	title := make([]span, len(columns))
	for i, c := range columns {
		title[i] = hushed(c.title)
	}
	for _, r := range slices.Insert(rows, 0, title) {
		var line []span
		for i, cell := range r {
			if i > 0 {
				pad := widths[i-1] - textWidth(r[i-1].text) + columnGap
				line = append(line, said(strings.Repeat(" ", pad)))
			}
			line = append(line, cell)
		}
		p.put(0, 4, line...)
	}
	return p.String()
}

// natural returns the widths of columns that show every cell in full.
func natural(columns []column, rows [][]span) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = textWidth(c.title)
		for _, r := range rows {
			widths[i] = max(widths[i], textWidth(r[i].text))
		}
	}
	return widths
}

// fitted shortens, truncates and omits columns until rows fit the width, if they can.
func fitted(width int, columns []column, rows [][]span) ([]column, [][]span) {
	excess := func(widths []int) int {
		sum := columnGap * (len(widths) - 1)
		for _, w := range widths {
			sum += w
		}
		return sum - width
	}
	cut := func(i, most int) {
		for _, r := range rows {
			r[i].text = short(r[i].text, most)
		}
	}
	if excess(natural(columns, rows)) <= 0 {
		return columns, rows
	}
	for i, c := range columns {
		if c.kind == identifier {
			for _, r := range rows {
				id := []rune(r[i].text)
				r[i].text = string(id[:min(len(id), idPrefix)])
			}
		}
	}
	for {
		widths := natural(columns, rows)
		least := slices.Clone(widths)
		omit := -1
		for i, c := range columns {
			if c.kind.flexes() {
				least[i] = min(widths[i], max(minFlexible, textWidth(c.title)))
			}
			if c.kind.optional() {
				omit = i
			}
		}
		if excess(least) <= 0 || omit < 0 {
			for i, c := range slices.Backward(columns) {
				if over := excess(widths); over > 0 && c.kind.flexes() {
					widths[i] = max(least[i], widths[i]-over)
					cut(i, widths[i])
				}
			}
			return columns, rows
		}
		columns = slices.Delete(slices.Clone(columns), omit, omit+1)
		for n := range rows {
			rows[n] = slices.Delete(rows[n], omit, omit+1)
		}
	}
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
	var rows [][]span
	for _, c := range list {
		trust := "-"
		if c.Registry.TrustScore != nil {
			trust = number(*c.Registry.TrustScore)
		}
		rows = append(rows, []span{
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
	add("did", c.Registry.DID)
	add("capabilities", strings.Join(c.Capabilities, ", "))
	add("protocols", strings.Join(c.Protocols, ", "))
	add("schemas", strings.Join(c.Schemas, ", "))
	if c.MaxTransactionValue != nil {
		add("maximum", strings.Join(present(number(*c.MaxTransactionValue), c.Currency), " "))
	}
	rows = append(rows, rowsOf(memberLeaves("conformance", c.ConformanceLevel))...)
	rows = append(rows, rowsOf(memberLeaves("availability", c.Availability))...)
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
	var rows [][]span
	for _, t := range list {
		may := "act"
		if t.ReadOnly {
			may = "read"
		}
		rows = append(rows, []span{said(t.ID), said(string(t.Agent)), said(may), said(orNever(t.LastUsed)), said(orNever(t.Expires)), hushed(t.Name)})
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
	var rows [][]span
	for _, v := range list {
		by := "parley"
		if v.Kind == "terms" {
			by = "operator"
			if v.By != "" {
				by = string(v.By)
			}
		}
		rows = append(rows, []span{said(v.Name), said(v.Kind), hushed(by)})
	}
	return table(s, "no schemas", []column{{"SCHEMA", fixed}, {"KIND", fixed}, {"BY", flexible}}, rows)
}
