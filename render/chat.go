package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// A Chat draws a transcript entry by entry.
type Chat struct {
	Style
	cast   cast
	offers *Offers
	day    string
	state  string
}

// NewChat returns a Chat for a new transcript.
func NewChat(s Style) *Chat {
	return &Chat{Style: s, cast: newCast(), offers: NewOffers()}
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
	c.act(body, e)
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
		column = max(column, textWidth(c.cast.of(a).name))
	}
	for i, a := range parties {
		as := "  invited"
		if i == 0 {
			as = "  invites"
		}
		name := c.cast.name(a)
		pad := strings.Repeat(" ", column-textWidth(name.text)+2)
		p.put(2, 4, name, said(pad), hushed(string(a)+as))
	}
}

// who draws the sender, whom it acts for, the recipient, the time and the state.
func (c *Chat) who(p *page, e transcript.Entry) {
	from := e.Message.Sender
	spans := []span{hushed(c.number(e.Stamp.Sequence)), c.cast.name(from)}
	switch authority := c.cast.acts[from]; {
	case e.Stamp.OnBehalfOf != "" && authority != "":
		spans = append(spans, said(" (for "), c.cast.name(e.Stamp.OnBehalfOf), said(", "+authority+")"))
	case e.Stamp.OnBehalfOf != "":
		spans = append(spans, said(" (for "), c.cast.name(e.Stamp.OnBehalfOf), said(")"))
	case from.IsHuman():
		spans = append(spans, span{" (human)", warn})
	}
	if to := e.Message.Recipient; to != "" {
		spans = append(spans, hushed(" → "), c.cast.name(to))
	}
	at := clock(e.Stamp.Receipt.AcceptedAt)
	if day := date(e.Stamp.Receipt.AcceptedAt); day != c.day {
		at = day + " " + at
		c.day = day
	}
	spans = append(spans, hushed("  "+at))
	state := e.Stamp.Receipt.State
	p.putBeside(0, bodyIndent, span{state, stateInk(state, c.state)}, spans...)
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
			p.put(bodyIndent, bodyIndent+2, hushed("hosted, so the broker holds the key that signs: "), c.cast.name(m.Agent))
		}
		switch m.Authority {
		case performatives.AuthorityPrincipal, performatives.AuthorityBroker:
		case performatives.AuthorityDecide:
			p.put(bodyIndent, bodyIndent+2, hushed("may decide: "), c.cast.name(m.Agent), hushed("  "+string(m.Agent)))
		default:
			c.cast.acts[m.Agent] = m.Authority
		}
	}
}

// refer draws a reference: the number of the entry, and the id if it is short.
func (c *Chat) refer(id string) span {
	text, known := c.offers.Refer(id, c.Full)
	switch {
	case known:
		return loud(text)
	case id == "":
		return hushed("nothing")
	}
	return loud(short(Clean(id), shortID))
}

// own draws the id that an act introduces, if it is short.
func (c *Chat) own(id string) span {
	if c.Full || len(id) <= shortID {
		return loud(id)
	}
	return span{}
}

// shortID is longer than ids that people choose, and shorter than a UUID.
const shortID = 24

func stamp(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err == nil
}

func clock(s string) string {
	if t, ok := stamp(s); ok {
		return t.Format(time.TimeOnly)
	}
	return s
}

func date(s string) string {
	if t, ok := stamp(s); ok {
		return t.Format(time.DateOnly)
	}
	return s
}

// when formats a time in UTC to the second.
func when(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

func whenStamp(s string) string {
	if t, ok := stamp(s); ok {
		return when(t)
	}
	return s
}
