package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
)

// Checks lists what others delegated to a principal.
func Checks(list []api.Check, s Style) string {
	var rows [][]span
	for _, c := range list {
		names := newCast()
		status := span{c.Status, plain}
		if c.Awaiting {
			status = span{c.Status + " *", warn}
		}
		rows = append(rows, []span{
			said(string(c.Session)), status, said(c.Authority), hushed(strings.TrimSuffix(whenStamp(c.ValidUntil), " UTC")),
			names.name(c.From), said(c.State.String()), said(c.Scope),
		})
	}
	text := table(s, "no checks", []column{
		{"SESSION", identifier}, {"STATUS", fixed}, {"AUTHORITY", fixed}, {"UNTIL (UTC)", optional}, {"BY", flexible}, {"STATE", optional}, {"SCOPE", flexible},
	}, rows)
	if slices.ContainsFunc(list, func(c api.Check) bool { return c.Awaiting }) {
		text += "* awaits your answer\n"
	}
	return text
}

// Check shows one: what is asked, by whom, what may be sent, and the offer at stake.
func Check(c api.Check, s Style) string {
	p := &page{Style: s}
	names := newCast()
	p.put(0, 2, loud("check "+string(c.Session)), said("  "), span{c.Status, warn})
	by := []span{names.name(c.From), hushed("  " + string(c.From))}
	if c.OnBehalfOf != c.From {
		by = append(by, said(" for "), names.name(c.OnBehalfOf))
	}
	p.put(0, 2, by...)
	p.quote(2, c.Scope)
	p.rows(0, checkRows(c))
	if o := c.Proposal; o != nil {
		p.put(2, 4, hushed("at stake: "), said(o.Subject), hushed(" "+o.Proposal+" offered by "), names.name(o.From), hushed(", "+o.Status))
		p.rows(bodyIndent, changeRows(c.Changes, c.Previous != nil))
	}
	if c.Truncated {
		p.put(2, 4, hushed("long texts are cut; 'parley session show' has them whole"))
	}
	return p.String()
}

func checkRows(c api.Check) (rows []row) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, row{name: name, value: []span{said(value)}})
		}
	}
	add("authority", c.Authority)
	add("over", c.Reference)
	add("until", whenStamp(c.ValidUntil))
	add("asked", whenStamp(c.Asked))
	add("purpose", c.Purpose)
	add("session", strings.Join(present(c.State.String(), c.Closing), ", "))
	var acts []string
	for _, act := range c.Allows {
		acts = append(acts, act.String())
	}
	add("may send", strings.Join(acts, ", "))
	if c.Result > 0 {
		add("your result", fmt.Sprintf("entry %d", c.Result))
	}
	if n := len(c.AlsoOffered); n > 0 {
		add("also offered", count(n, "delegation", "delegations")+" of other sides; you may accept one at a time")
	}
	if c.Status == "offered" {
		rows = append(rows, row{name: "you", value: []span{{"join to read the transcript and the offer: 'parley check join'", warn}}})
	}
	return rows
}

// changeRows are the terms that differ from the previous offer, or all.
func changeRows(changes []api.Change, compared bool) (rows []row) {
	same := 0
	for _, c := range changes {
		t := Term{strings.TrimPrefix(c.Path, "terms."), c.Kind, c.Before, c.After}
		if compared && c.Kind == api.Same {
			same++
			continue
		}
		row := termRows([]Term{t})[0]
		if !compared {
			row.value = append(row.value, hushed(strings.TrimSuffix("  "+c.Label, "  ")))
		}
		rows = append(rows, row)
	}
	if same > 0 {
		rows = append(rows, row{value: []span{hushed(count(same, "term", "terms") + " unchanged")}})
	}
	return rows
}
