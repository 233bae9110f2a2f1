package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
)

// Escalations lists a page of the escalation inbox, and the counts of the whole
// inbox.
func Escalations(list api.Escalations, s Style) string {
	var rows [][]Span
	now, _ := stamp(list.Now)
	for _, e := range list.Escalations {
		rows = append(rows, itemRow(e, now))
	}
	text := table(s, "no escalations", []column{
		{"ESCALATION", identifier}, {"STATUS", fixed}, {"URGENCY", fixed}, {"DUE (UTC)", optional}, {"LEFT", fixed}, {"AMOUNT", fixed},
		{"CLAIMED BY", flexibleOptional}, {"BY", flexible}, {"REASON", flexibleOptional}, {"PURPOSE", flexible},
	}, rows)
	n := list.Counts
	if n.Open == 0 {
		return text
	}
	line := fmt.Sprintf("%d open", n.Open)
	for _, urgency := range []string{"critical", "high", "medium", "low"} {
		if m := n.Urgency[urgency]; m > 0 {
			line += fmt.Sprintf(", %d %s", m, urgency)
		}
	}
	line += fmt.Sprintf(" · %d due soon · %d yours · %d unclaimed", n.DueSoon, n.Mine, n.Unclaimed)
	p := &page{Style: s}
	p.put(0, 2, hushed(line))
	return text + p.String()
}

func itemRow(e api.EscalationItem, now time.Time) []Span {
	state := Span{e.Status, good}
	due := e.AnswerDue()
	left := hushed("")
	if e.Status == "open" {
		state.ink = warn
		left = timeLeft(due, now)
	}
	names := newNamer()
	by := names.of(e.By).name
	switch {
	case e.Dispute != "":
		by += " (disputes)"
	case e.OnBehalfOf != e.By:
		by += " (for " + names.of(e.OnBehalfOf).name + ")"
	}
	return []Span{
		said(string(e.ID)), state, said(e.Urgency), hushed(strings.TrimSuffix(whenStamp(due), " UTC")), left,
		said(amountOf(e.Amount)), said(holder(e, names)), said(by), said(e.Reason), said(e.Purpose),
	}
}

// timeLeft formats the time until an answer is due.
func timeLeft(due string, now time.Time) Span {
	at, ok := stamp(due)
	if !ok || now.IsZero() {
		return hushed("")
	}
	left := at.Sub(now)
	switch {
	case left <= 0:
		return Span{"overdue", bad}
	case left < time.Minute:
		return Span{fmt.Sprintf("%ds", int(left.Seconds())), bad}
	case left < 15*time.Minute:
		return Span{fmt.Sprintf("%dm", int(left.Minutes())), bad}
	case left < time.Hour:
		return Span{fmt.Sprintf("%dm", int(left.Minutes())), warn}
	case left < 48*time.Hour:
		return said(fmt.Sprintf("%dh %dm", int(left.Hours()), int(left.Minutes())%60))
	}
	return said(fmt.Sprintf("%dd %dh", int(left.Hours())/24, int(left.Hours())%24))
}

func amountOf(a *escalation.Amount) string {
	if a == nil {
		return ""
	}
	return Terminal.money(a.Value, a.Currency)
}

func holder(e api.EscalationItem, names namer) string {
	switch {
	case e.Case.Claim != nil:
		return names.of(e.Case.Claim.By).name
	case e.Case.Assignee != "":
		return "→ " + names.of(e.Case.Assignee).name
	}
	return ""
}

// Item shows one escalation: the question, the offer at stake, who decides by when,
// and its status. A Chat shows the conversation before it.
func Item(e api.EscalationItem, s Style) string {
	p := &page{Style: s}
	names := newNamer()
	p.put(0, 2, loud("escalation "+string(e.ID)), said("  "), Span{e.Status, warn})
	p.put(0, 2, hushed(strings.Join(present("session "+string(e.Session), e.Purpose), " · ")))
	by := []Span{names.name(e.By), hushed("  " + string(e.By))}
	context, stake, answered := "context", "at stake: ", ""
	if e.Dispute != "" {
		context, stake, answered = "what "+names.of(e.By).name+" claims", "about: ", ", to be answered"
		by = append(by, said(" disputes"))
	}
	if e.OnBehalfOf != e.By {
		by = append(by, said(answered+" for "), names.name(e.OnBehalfOf))
	}
	p.put(0, 2, by...)
	p.rows(0, itemRows(e, names))
	if len(e.Context) > 0 {
		p.put(2, 4, hushed(context))
		for _, b := range Terminal.Blocks(e.Context) {
			p.block(b)
		}
	}
	if e.SuggestedAction != "" {
		p.put(2, 4, hushed("suggested"))
		p.quote(bodyIndent, e.SuggestedAction)
	}
	if o := e.Proposal; o != nil {
		p.put(2, 4, hushed(stake), said(cmp.Or(o.Subject, o.Proposal, "commitment "+o.Commitment)), hushed(" offered by "), names.name(o.From), hushed(", "+o.Status))
		var before jsontext.Value
		if e.Previous != nil {
			before = e.Previous.Terms
		}
		p.rows(bodyIndent, changeRows(api.Compare(o.Terms, before, e.Labels), e.Previous != nil))
	}
	if e.Truncated {
		p.put(2, 4, Span{"shortened: ", warn}, said("what is too long here is cut"+leftOut(e.Omitted)+"; "), hushed("parley session show "+string(e.Session)+" --full shows all"))
	}
	p.comments(e.Comments, names)
	return p.String()
}

func itemRows(e api.EscalationItem, names namer) []Row {
	var rows []Row
	add := func(name string, value ...Span) { rows = append(rows, Row{Name: name, Value: value}) }
	add("reason", said(e.Reason))
	add("urgency", said(e.Urgency))
	if e.Amount != nil {
		add("amount", loud(amountOf(e.Amount)), hushed("  at "+e.Amount.Path))
	}
	add("due", said(whenStamp(e.AnswerDue())))
	if e.Route == nil {
		add("decides", said("a human of "+string(e.Organisation)))
	} else {
		rows = append(rows, routeRows(e, names)...)
	}
	for _, v := range e.Votes {
		value := []Span{names.name(v.By), said(" " + v.Decision + " at " + whenStamp(v.At))}
		if escalation.Approves(v.Decision) && !e.Confirms() {
			value = append(value, said(", "+Allows(v.Authority, StakeOf(&e))))
		}
		add("ruling", value...)
	}
	if held := holder(e, names); held != "" {
		value := []Span{said(held)}
		if e.Case.Claim != nil {
			value = append(value, hushed(" until "+when(e.Case.Claim.Until)))
		}
		add("claimed by", value...)
	}
	if e.IfUnanswered != nil {
		add("no answer", said(whenStamp(e.IfUnanswered.At)+": "+e.IfUnanswered.Then))
	}
	if e.DecidedBy != "" {
		add("decided", said(e.Status+" by "+string(e.DecidedBy)+" at "+whenStamp(e.DecidedAt)))
	}
	if e.You != nil && e.You.Why != "" {
		add("you", Span{e.You.Why, warn})
	}
	if e.Status == "open" && e.ViewHash != "" {
		add("revision", hushed(fmt.Sprintf("%d", e.Revision)))
	}
	return rows
}

// routeRows show the approvers of each level.
func routeRows(e api.EscalationItem, names namer) (rows []Row) {
	for n, level := range e.Route.Levels {
		who := "every human of " + string(e.Organisation) + " who may decide"
		if len(level.Approvers) > 0 {
			all := make([]string, len(level.Approvers))
			for i, a := range level.Approvers {
				all[i] = names.of(a).name
			}
			who = strings.Join(all, ", ")
		}
		if level.Quorum > 1 {
			who = fmt.Sprintf("%d of %s (%d so far)", level.Quorum, who, level.Approved)
		}
		value := []Span{said(who)}
		if level.Name != "" && len(e.Route.Levels) > 1 {
			value = append(value, hushed("  "+level.Name))
		}
		switch {
		case len(e.Route.Levels) == 1:
		case n > e.Route.Level:
			value = append(value, hushed(", after "+whenStamp(e.Route.Levels[n-1].Due)))
		default:
			value = append(value, hushed(", until "+whenStamp(level.Due)))
		}
		rows = append(rows, Row{Name: "decides", Value: value})
	}
	return rows
}

// Checks lists what others delegated to a principal.
func Checks(list []api.Check, s Style) string {
	var rows [][]Span
	for _, c := range list {
		names := newNamer()
		status := Span{c.Status, plain}
		if c.Awaiting {
			status = Span{c.Status + " *", warn}
		}
		rows = append(rows, []Span{
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
	names := newNamer()
	p.put(0, 2, loud("check "+string(c.Session)), said("  "), Span{c.Status, warn})
	by := []Span{names.name(c.From), hushed("  " + string(c.From))}
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

func checkRows(c api.Check) (rows []Row) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, fact(name, value))
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
		add("also offered", Count(n, "delegation", "delegations")+" of other sides; you may accept one at a time")
	}
	if c.Status == "offered" {
		rows = append(rows, Row{Name: "you", Value: []Span{{"join to read the transcript and the offer: 'parley check join'", warn}}})
	}
	return rows
}

// changeRows are the terms that differ from the previous offer, or all.
func changeRows(changes []api.Change, compared bool) (rows []Row) {
	same := 0
	for _, c := range changes {
		t := newTerm(strings.TrimPrefix(c.Path, "terms."), c.Kind, c.Before, c.After)
		if compared && c.Kind == api.Same {
			same++
			continue
		}
		row := termRows([]Term{t})[0]
		if !compared {
			row.Value = append(row.Value, hushed(strings.TrimSuffix("  "+c.Label, "  ")))
		}
		rows = append(rows, row)
	}
	if same > 0 {
		rows = append(rows, Row{Value: []Span{hushed(Count(same, "term", "terms") + " unchanged")}})
	}
	return rows
}
