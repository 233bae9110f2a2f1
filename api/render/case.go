package render

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

func (p *page) comments(all []api.CaseAction, names namer) {
	for _, comment := range all {
		p.put(2, 4, names.name(comment.By), hushed(" to colleagues, "+when(comment.At)))
		p.quote(bodyIndent, comment.Text)
	}
}

// AtStake is the offer that an approval is about.
type AtStake struct {
	Terms  performatives.Hash       // "" if it is not known
	Paths  []string                 // of its terms
	More   int                      // terms that Paths lacks
	Amount *escalation.Amount       // the highest in it
	Shown  bool                     // an approval without bounds allows exactly what was shown
	Label  func(path string) string // what a term is called; nil is its path
}

// StakeOf is the offer that an escalation is about.
func StakeOf(e *api.EscalationItem) AtStake {
	return AtStake{Terms: e.TermsHash, Paths: e.TermPaths(), More: e.Omitted[api.PartChanges], Amount: e.Amount, Shown: e.AsShown()}
}

// Grant words what an approval allows, one bound a line, and which terms of the offer may
// change.
func (p Paper) Grant(a *performatives.RulingsAuthority, of AtStake) (lines []string, free string) {
	label := of.Label
	if label == nil {
		label = func(path string) string { return path }
	}
	if a == nil {
		a = new(performatives.RulingsAuthority)
	}
	if a.MaxAmount != nil {
		line := "at most " + p.money(*a.MaxAmount, a.Currency)
		if a.TermPath != "" {
			line += " for " + label(a.TermPath)
		}
		lines = append(lines, line)
	}
	for _, b := range a.Bounds {
		var n float64
		line := label(b.TermPath) + ": exactly " + p.text(b.Equals)
		switch {
		case b.Max != nil:
			line = label(b.TermPath) + ": at most " + p.money(*b.Max, b.Currency)
		case b.Min != nil:
			line = label(b.TermPath) + ": at least " + p.money(*b.Min, b.Currency)
		case b.Equals.Kind() == '0' && json.Unmarshal(b.Equals, &n) == nil:
			line = label(b.TermPath) + ": exactly " + p.money(n, b.Currency)
		}
		lines = append(lines, line)
	}
	switch {
	case a.TermsHash == "":
	case of.Terms == "":
		lines = append(lines, "exactly the terms that were shown")
	case of.Terms == a.TermsHash:
		lines = append(lines, "exactly these terms")
	default:
		lines = append(lines, "exactly other terms than these")
	}
	switch {
	case len(lines) == 0 && of.Shown:
		lines = append(lines, "exactly these terms")
	case len(lines) == 0:
		lines = append(lines, "no bound")
	case a.TermsHash == "":
		free = mayChange(escalation.Free(a, of.Paths, of.Amount), of.More, label)
	}
	if a.Scope == performatives.ThreadScope {
		lines = append(lines, "in this thread only")
	}
	return lines, free
}

// mostFree are the terms that are named as free to change.
const mostFree = 12

func mayChange(paths []string, more int, label func(path string) string) string {
	if n := len(paths) - mostFree; n > 0 {
		paths, more = paths[:mostFree], more+n
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimPrefix(label(path), "terms."))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return ""
	}
	return "may change: " + strings.Join(names, ", ")
}

// Allows says what a ruling allows, until when, and what may change.
func Allows(a *performatives.RulingsAuthority, of AtStake) string {
	lines, free := Terminal.Grant(a, of)
	if a != nil && a.ValidUntil != nil {
		lines = append(lines, "until "+when(*a.ValidUntil))
	}
	return strings.Join(present(strings.Join(lines, ", "), free), "; ")
}

// An Event is an action on an escalation in words.
type Event struct {
	api.CaseAction
	line []Span
}

// Words is what happened, without the time.
func (e Event) Words() string { return joined(e.line) }

// Note is what is said beside it; comments have a place of their own.
func (e Event) Note() string {
	switch {
	case e.Kind == escalation.Commented, e.Kind == escalation.Claimed && e.To != "":
		return ""
	case e.Kind == escalation.Opened && e.Text != "":
		return "rule " + e.Text
	}
	return e.Text
}

var eventWords = map[escalation.Kind]string{
	escalation.Opened: "escalated by", escalation.Viewed: "viewed by", escalation.Claimed: "claimed by", escalation.Released: "released by",
	escalation.Assigned: "assigned by", escalation.Commented: "note by", escalation.Transferred: "transferred by",
	escalation.Reminded: "reminded", escalation.Reescalated: "moved to the next level", escalation.Notified: "notified",
	escalation.Voted: "vote by", escalation.Decided: "decided by", escalation.Ended: "ended",
}

// Events words the case log of an escalation.
func Events(log []api.CaseAction, name func(performatives.Agent) Span) []Event {
	all := make([]Event, len(log))
	for n, e := range log {
		text, arrow := cmp.Or(eventWords[e.Kind], string(e.Kind)), " → "
		if e.Kind == escalation.Claimed && e.To != "" {
			text, arrow = "taken over by", " from "
		}
		line := []Span{said(text)}
		switch {
		case e.By != "" && !e.By.IsBroker():
			line = append(line, said(" "), name(e.By))
		case e.Kind == escalation.Assigned:
			line = []Span{said("assigned")}
		case e.Kind == escalation.Reminded, e.Kind == escalation.Reescalated, e.Kind == escalation.Ended:
			line = append(line, said(", by timer"))
		}
		if e.To != "" {
			line = append(line, said(arrow), name(e.To))
		}
		if e.Absent != "" {
			line = append(line, said(", who stands in for "), name(e.Absent))
		}
		all[n] = Event{e, line}
	}
	return all
}

// History lists the events of an escalation.
func History(h api.CaseLog, s Style) string {
	p := &page{Style: s}
	names := newNamer()
	for _, e := range Events(h.Actions, names.name) {
		line := append([]Span{hushed(when(e.At)), said("  ")}, e.line...)
		if !e.Until.IsZero() {
			line = append(line, hushed(", until "+when(e.Until)))
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
