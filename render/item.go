package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Escalations lists a page of the escalation inbox, and the counts of the whole
// inbox.
func Escalations(list api.Escalations, s Style) string {
	var rows [][]span
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

func itemRow(e api.EscalationItem, now time.Time) []span {
	state := span{e.Status, good}
	due := e.Due
	if due == "" {
		due = e.Deadline
	}
	left := hushed("")
	if e.Status == "open" {
		state.ink = warn
		left = timeLeft(due, now)
	}
	names := newCast()
	by := names.of(e.By).name
	if e.OnBehalfOf != e.By {
		by += " (for " + names.of(e.OnBehalfOf).name + ")"
	}
	return []span{
		said(string(e.ID)), state, said(e.Urgency), hushed(strings.TrimSuffix(whenStamp(due), " UTC")), left,
		said(amountOf(e)), said(holder(e, names)), said(by), said(e.Reason), said(e.Purpose),
	}
}

// timeLeft formats the time until an answer is due.
func timeLeft(due string, now time.Time) span {
	at, ok := stamp(due)
	if !ok || now.IsZero() {
		return hushed("")
	}
	left := at.Sub(now)
	switch {
	case left <= 0:
		return span{"overdue", bad}
	case left < time.Minute:
		return span{fmt.Sprintf("%ds", int(left.Seconds())), bad}
	case left < 15*time.Minute:
		return span{fmt.Sprintf("%dm", int(left.Minutes())), bad}
	case left < time.Hour:
		return span{fmt.Sprintf("%dm", int(left.Minutes())), warn}
	case left < 48*time.Hour:
		return said(fmt.Sprintf("%dh %dm", int(left.Hours()), int(left.Minutes())%60))
	}
	return said(fmt.Sprintf("%dd %dh", int(left.Hours())/24, int(left.Hours())%24))
}

func amountOf(e api.EscalationItem) string {
	if e.Amount == nil {
		return ""
	}
	return strings.Join(present(number(e.Amount.Value), e.Amount.Currency), " ")
}

func holder(e api.EscalationItem, names cast) string {
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
	names := newCast()
	p.put(0, 2, loud("escalation "+string(e.ID)), said("  "), span{e.Status, warn})
	p.put(0, 2, hushed(strings.Join(present("session "+string(e.Session), e.Purpose), " · ")))
	by := []span{names.name(e.By), hushed("  " + string(e.By))}
	if e.OnBehalfOf != e.By {
		by = append(by, said(" for "), names.name(e.OnBehalfOf))
	}
	p.put(0, 2, by...)
	p.rows(0, itemRows(e, names))
	c := &Chat{Style: s}
	if len(e.Context) > 0 {
		p.put(2, 4, hushed("context"))
		c.value(p, e.Context)
	}
	if e.SuggestedAction != "" {
		p.put(2, 4, hushed("suggested"))
		p.quote(bodyIndent, e.SuggestedAction)
	}
	if o := e.Proposal; o != nil {
		p.put(2, 4, hushed("at stake: "), said(o.Subject), hushed(" offered by "), names.name(o.From), hushed(", "+o.Status))
		p.rows(bodyIndent, stakeRows(e))
	}
	if e.Truncated {
		p.put(2, 4, span{"shortened: ", warn}, said("what is too long here is cut"+leftOut(e.Omitted)+"; "), hushed("parley session show "+string(e.Session)+" --full shows all"))
	}
	p.comments(e.Comments, names)
	return p.String()
}

func (p *page) comments(all []api.CaseAction, names cast) {
	for _, comment := range all {
		p.put(2, 4, names.name(comment.By), hushed(" to colleagues, "+when(comment.At)))
		p.quote(bodyIndent, comment.Text)
	}
}

func itemRows(e api.EscalationItem, names cast) []row {
	var rows []row
	add := func(name string, value ...span) { rows = append(rows, row{name: name, value: value}) }
	add("reason", said(e.Reason))
	add("urgency", said(e.Urgency))
	if e.Amount != nil {
		add("amount", loud(amountOf(e)), hushed("  at "+e.Amount.Path))
	}
	due := e.Deadline
	if e.Due != "" {
		due = e.Due
	}
	add("due", said(whenStamp(due)))
	if e.Route == nil {
		add("decides", said("a human of "+string(e.Organisation)))
	} else {
		rows = append(rows, routeRows(e, names)...)
	}
	for _, v := range e.Votes {
		value := []span{names.name(v.By), said(" " + v.Decision + " at " + whenStamp(v.At))}
		add("ruling", append(value, granted(v.Authority)...)...)
	}
	if held := holder(e, names); held != "" {
		value := []span{said(held)}
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
		add("you", span{e.You.Why, warn})
	}
	if e.Status == "open" && e.ViewHash != "" {
		add("revision", hushed(fmt.Sprintf("%d", e.Revision)))
	}
	return rows
}

// granted says what a ruling allows.
func granted(a *performatives.RulingsAuthority) (value []span) {
	if a == nil {
		return nil
	}
	if a.MaxAmount != nil {
		value = append(value, said(", up to "+strings.Join(present(number(*a.MaxAmount), a.Currency), " ")), hushed(strings.TrimSuffix(" at "+a.TermPath, " at ")))
	}
	for _, b := range a.Bounds {
		value = append(value, said(", "+b.String()))
	}
	if a.TermsHash != "" {
		value = append(value, said(", exactly the terms that were shown"))
	}
	if a.ValidUntil != nil {
		value = append(value, said(", until "+when(*a.ValidUntil)))
	}
	return value
}

// routeRows show the approvers of each level.
func routeRows(e api.EscalationItem, names cast) (rows []row) {
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
		value := []span{said(who)}
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
		rows = append(rows, row{name: "decides", value: value})
	}
	return rows
}

// stakeRows are the terms at stake: those that differ from the previous offer, or all.
func stakeRows(e api.EscalationItem) []row {
	if e.Previous != nil {
		terms, same := differences(flatten(e.Previous.Terms), flatten(e.Proposal.Terms))
		rows := termRows(terms)
		if same > 0 {
			rows = append(rows, row{name: "", value: []span{hushed(count(same, "term", "terms") + " unchanged")}})
		}
		return rows
	}
	rows := rowsOf(flatten(e.Proposal.Terms))
	for n, l := range flatten(e.Proposal.Terms) {
		if label := e.Labels["terms."+l.path].Title; label != "" {
			rows[n].value = append(rows[n].value, hushed("  "+label))
		}
	}
	return rows
}

// History lists the events of an escalation.
func History(h api.CaseLog, s Style) string {
	p := &page{Style: s}
	names := newCast()
	for _, e := range h.Actions {
		by := hushed("timer")
		if e.By != "" {
			by = names.name(e.By)
		}
		line := []span{hushed(when(e.At)), said("  "), by, said(" " + string(e.Kind))}
		if e.To != "" {
			line = append(line, said(" to "), names.name(e.To))
		}
		if e.Absent != "" {
			line = append(line, said(" for "), names.name(e.Absent))
		}
		if !e.Until.IsZero() {
			line = append(line, hushed(" until "+when(e.Until)))
		}
		if e.Level > 0 {
			line = append(line, hushed(fmt.Sprintf(" (level %d)", e.Level+1)))
		}
		p.put(0, 4, line...)
		p.quote(bodyIndent, e.Text)
	}
	if len(h.Actions) == 0 {
		p.put(0, 0, hushed("no events yet"))
	}
	return p.String()
}

// Enrolment shows a code to enrol a browser.
func Enrolment(e api.Enrolment, s Style) string {
	p := &page{Style: s}
	p.put(0, 2, loud(e.Code))
	p.put(0, 2, hushed(fmt.Sprintf("enrols one browser of %s until %s", performatives.Agent(Clean(string(e.Agent))), when(e.Expires))))
	return p.String()
}
