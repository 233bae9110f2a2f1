// Package render formats sessions as text for people.
//
//	chat := render.NewChat(render.Style{Width: 100, Colour: true})
//	for _, entry := range entries {
//		fmt.Print(chat.Add(entry))
//	}
//	fmt.Print(chat.End(view))
//
// Invariants:
//
//   - A counterparty's text cannot control the terminal: control, bidirectional and
//     invisible characters appear as escapes such as \u202e, and free text has a bar
//     before each line.
//   - Without Colour the output contains no escape sequence.
//   - No line is wider than Width columns, which is at least 40. Omitted lines are
//     counted, and truncated text ends in ….
//
// The package is pure: no terminal, no clock. Times are in UTC.
package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// Style is how to format.
type Style struct {
	Width  int  // columns, at least 40; 0 without a terminal: 100, and tables of any width
	Colour bool // with ANSI escape sequences
	Full   bool // omit nothing: every line of a long message, every id, every cell
}

const (
	defaultWidth = 100
	minWidth     = 40
)

func (s Style) width() int {
	if s.Width == 0 {
		return defaultWidth
	}
	return max(s.Width, minWidth)
}

// Conversation formats a transcript, or its beginning and some later entries, and the
// session's state. It says how many entries are left out.
func Conversation(entries []transcript.Entry, view api.SessionView, s Style) string {
	chat := NewChat(s)
	var out strings.Builder
	next := uint64(0)
	for _, e := range entries {
		out.WriteString(leftOutFrom(next, e.Stamp.Sequence, s))
		out.WriteString(chat.Add(e))
		next = e.Stamp.Sequence + 1
	}
	if last := view.Head.Sequence; last != nil {
		out.WriteString(leftOutFrom(next, *last+1, s))
	}
	out.WriteString(chat.End(view))
	return out.String()
}

// leftOutFrom says that the entries from one sequence number to another are left out.
func leftOutFrom(from, to uint64, s Style) string {
	if to <= from {
		return ""
	}
	p := &page{Style: s}
	p.gap()
	p.put(bodyIndent, bodyIndent, Span{fmt.Sprintf("… %s left out (--cursor %d begins with them)", Count(int(to-from), "message", "messages"), from), warn}) //nolint:gosec // a session has fewer
	return p.String()
}

// A Chat draws a transcript entry by entry.
type Chat struct {
	Style
	names  namer
	reader *Reader
	day    string
	state  string
}

// NewChat returns a Chat for a new transcript.
func NewChat(s Style) *Chat {
	c := &Chat{Style: s, names: newNamer()}
	paper := Terminal
	if s.Full {
		paper = Full
	}
	c.reader = NewReader(c.names.name, paper)
	return c
}

const (
	bodyIndent = 4
	// maxLines is the maximum height of a message.
	maxLines = 60
)

// Add draws the next entry. The first one starts with a heading.
func (c *Chat) Add(e transcript.Entry) string {
	p := &page{Style: c.Style}
	if e.Message.Body == nil {
		e.Message.DecodeBody() //nolint:errcheck // a body that does not decode is drawn as JSON
	}
	if c.day == "" {
		c.opens(p, e)
	}
	p.gap()
	c.who(p, e)
	body := &page{Style: c.Style}
	blocks := c.reader.Read(e)
	act := []Span{loud(e.Message.ActName), said(" ")}
	if e.Message.Body != nil {
		act, blocks = append(act, blocks[0].Line...), blocks[1:]
	}
	body.put(bodyIndent, bodyIndent+2, act...)
	for _, b := range blocks {
		body.block(b)
	}
	c.joins(body, e)
	body.cut(maxLines, bodyIndent)
	p.lines = append(p.lines, body.lines...)
	c.state = e.Stamp.Receipt.State
	return p.String()
}

// opens draws the heading: purpose, mode and participants.
func (c *Chat) opens(p *page, e transcript.Entry) {
	c.day = date(e.Stamp.Receipt.AcceptedAt)
	title, mode := "session", session.DefaultMode
	if body, ok := e.Message.Body.(*performatives.ProposeBody); ok {
		title = body.Subject
		if terms := invitationTerms(body.Terms); terms.Mode != "" {
			mode = terms.Mode
		}
	}
	p.put(0, 2, loud(title))
	p.put(0, 2, hushed("session "+string(e.Message.Session)+" · mode "+mode+" · "+c.day+" UTC"))
	parties := append([]performatives.Agent{e.Message.Sender}, session.Invites(e.Message)...)
	column := 0
	for _, a := range parties {
		column = max(column, textWidth(c.names.of(a).name))
	}
	for i, a := range parties {
		as := "  invited"
		if i == 0 {
			as = "  invites"
		}
		name := c.names.name(a)
		pad := strings.Repeat(" ", column-textWidth(name.Text)+2)
		p.put(2, 4, name, said(pad), hushed(string(a)+as))
	}
}

// who draws the sender, whom it acts for, the recipient, the time and the state.
func (c *Chat) who(p *page, e transcript.Entry) {
	from := e.Message.Sender
	spans := []Span{hushed(c.number(e.Stamp.Sequence)), c.names.name(from)}
	switch authority := c.names.acts[from]; {
	case e.Stamp.OnBehalfOf != "" && authority != "":
		spans = append(spans, said(" (for "), c.names.name(e.Stamp.OnBehalfOf), said(", "+authority+")"))
	case e.Stamp.OnBehalfOf != "":
		spans = append(spans, said(" (for "), c.names.name(e.Stamp.OnBehalfOf), said(")"))
	case from.IsHuman():
		spans = append(spans, Span{" (human)", warn})
	}
	if to := e.Message.Recipient; to != "" {
		spans = append(spans, hushed(" → "), c.names.name(to))
	}
	at := clock(e.Stamp.Receipt.AcceptedAt)
	if day := date(e.Stamp.Receipt.AcceptedAt); day != c.day {
		at = day + " " + at
		c.day = day
	}
	spans = append(spans, hushed("  "+at))
	state := e.Stamp.Receipt.State
	p.putBeside(0, bodyIndent, Span{state, stateInk(state, c.state)}, spans...)
}

// number formats a sequence number, padded to the body's indent.
func (c *Chat) number(sequence uint64) string {
	n := strconv.FormatUint(sequence, 10)
	return strings.Repeat(" ", max(bodyIndent-2-len(n), 0)) + n + "  "
}

func stateInk(state, before string) ink {
	switch state {
	case session.Failed.String():
		return bad
	case session.Escalated.String():
		return warn
	case session.Closed.String():
		return good
	case before:
		return faint
	default:
		return strong
	}
}

// joins draws the humans whom the entry adds, and records the delegates.
func (c *Chat) joins(p *page, e transcript.Entry) {
	for _, m := range e.Stamp.Joined {
		if m.Custody == performatives.Hosted {
			p.put(bodyIndent, bodyIndent+2, hushed("hosted, so the broker holds the key that signs: "), c.names.name(m.Agent))
		}
		switch m.Authority {
		case performatives.AuthorityPrincipal, performatives.AuthorityBroker:
		case performatives.AuthorityDecide:
			p.put(bodyIndent, bodyIndent+2, hushed("may decide: "), c.names.name(m.Agent), hushed("  "+string(m.Agent)))
		default:
			c.names.acts[m.Agent] = m.Authority
		}
	}
}

// End draws the session's state: what was agreed, the mode's part, what is open, and
// the deadlines.
func (c *Chat) End(v api.SessionView) string {
	p := &page{Style: c.Style}
	p.gap()
	state := v.State.String()
	spans := []Span{{state, stateInk(state, "")}}
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
	if v.Publish != nil {
		p.put(2, 4, said(Consents(v.Publish)))
	}
	if len(v.ModePart) > 0 {
		p.rows(0, rowsOf(appendLeaves(nil, "", v.ModePart)))
	}
	if !v.State.Over() {
		c.running(p, v)
	}
	if v.Truncated {
		p.put(2, 4, Span{"shortened: ", warn}, said("the summary is cut"+leftOut(v.Omitted)+"; the conversation has all"))
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
		p.put(2, 4, Span{"agreed ", good}, c.reader.refer(id), said(" of "), c.names.name(o.From))
	case o.Status == session.Open.String() && !v.State.Over():
		spans := []Span{Span{"open ", warn}, c.reader.refer(id), said(" of "), c.names.name(o.From)}
		switch {
		case len(o.Pending) > 0:
			spans = append(spans, said(" awaits answers about "+strings.Join(o.Pending, ", ")))
		case o.To != "":
			spans = append(spans, said(" awaits "), c.names.name(o.To))
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
			p.put(2, 4, Span{"open ", warn}, said("invitation of "), c.names.name(a.Agent))
		}
	}
	for _, g := range v.Delegations {
		if g.Status == "active" || g.Status == "offered" {
			p.put(2, 4, c.names.name(g.To), said(" for "), c.names.name(g.OnBehalfOf), hushed(", "+g.Authority+" delegation, "+g.Status))
		}
	}
	if e := v.Escalation; e != nil && e.Status == "open" {
		p.put(2, 4, Span{"paused ", warn}, c.reader.refer(string(e.ID)),
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
