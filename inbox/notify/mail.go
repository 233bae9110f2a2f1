package notify

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/wneessen/go-mail"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// post is mail to the people of one organisation.
type post struct {
	mail *Mail
	smtp *SMTP
}

func (p *post) wants(k escalation.Kind) bool { return slices.Contains(p.mail.Events, k) }

// send sends one mail to each recipient. If a retry repeats a mail, it has the same
// Message-ID, and mailboxes show it once.
func (p *post) send(ctx context.Context, note Notification, _ time.Time) (who string, err error) {
	if note.Enrolled == nil && note.Asked == nil && note.Week == nil && note.Due == nil && note.Item.Status != "open" && !slices.Contains([]escalation.Kind{escalation.Decided, escalation.Ended}, note.Event.Kind) {
		return "", nil // the item has ended, so nobody needs to act
	}
	to := p.to(note)
	if len(to) == 0 {
		return "", nil
	}
	from := p.smtp.From
	var messages []*mail.Msg
	for n, address := range to {
		m := mail.NewMsg(mail.WithEncoding(mail.EncodingQP), mail.WithNoDefaultUserAgent())
		if err := m.From(from); err != nil {
			return "", fmt.Errorf("%w: %w", err, errPermanent)
		}
		if err := m.To(address); err != nil {
			return "", fmt.Errorf("%w: %w", err, errPermanent)
		}
		m.SetMessageIDWithValue(fmt.Sprintf("%s.%d@parley", note.ID, n))
		m.SetGenHeader("Auto-Submitted", "auto-generated")
		m.Subject(subject(note))
		m.SetBodyString(mail.TypeTextPlain, text(note))
		messages = append(messages, m)
	}
	client, err := mail.NewClient(p.smtp.host, p.smtp.options()...)
	if err != nil {
		return "", err
	}
	return "mail to " + strings.Join(to, ", "), client.DialAndSendWithContext(ctx, messages...)
}

func (s *SMTP) options() []mail.Option {
	o := []mail.Option{
		mail.WithPort(s.port), mail.WithTimeout(attempt),
		mail.WithTLSConfig(&tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}),
	}
	switch s.TLS {
	case fullTLS:
		o = append(o, mail.WithSSL())
	case noTLS:
		o = append(o, mail.WithTLSPolicy(mail.NoTLS))
	default:
		o = append(o, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.User != "" {
		o = append(o, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.User), mail.WithPassword(s.password))
	}
	return o
}

// to returns the addresses of those who are asked now and of those who always get
// mail.
func (p *post) to(note Notification) []string {
	var people []performatives.Agent
	switch {
	case note.Enrolled != nil: // for the human only, not for those who always get mail
		if address := p.mail.People[note.Enrolled.Human]; address != "" {
			return []string{address}
		}
		return nil
	case note.Due != nil:
		return p.also(note.Due.People)
	case note.Event.To != "":
		people = []performatives.Agent{note.Event.To}
	case note.Item.Route != nil && note.Event.Level < len(note.Item.Route.Levels):
		people = note.Item.Route.Levels[note.Event.Level].Approvers
	}
	if len(people) == 0 { // everybody is asked
		for a := range p.mail.People {
			people = append(people, a)
		}
		slices.Sort(people)
	}
	return p.also(people)
}

// also are the addresses of those who always get mail, and of some people.
func (p *post) also(people []performatives.Agent) []string {
	to := slices.Clone(p.mail.Always)
	for _, a := range people {
		if address := p.mail.People[a]; address != "" && !slices.Contains(to, address) {
			to = append(to, address)
		}
	}
	return to
}

// subject contains no text of the counterparty.
func subject(note Notification) string {
	if note.Enrolled != nil {
		return "A browser can sign your decisions from now on"
	}
	if note.Asked != nil {
		return fmt.Sprintf("[check] %s asks %s", note.Asked.From, note.Asked.Human)
	}
	if w := note.Week; w != nil {
		return fmt.Sprintf("How the sessions of %s went, %s to %s", w.Organisation, w.Since.Format(time.DateOnly), w.Until.Format(time.DateOnly))
	}
	if note.Due != nil {
		return dueSubject(note.Due)
	}
	it := &note.Item
	what := "needs a decision"
	switch note.Event.Kind {
	case escalation.Reminded:
		what = "still needs a decision"
	case escalation.Reescalated, escalation.Transferred:
		what = "now needs your decision"
	case escalation.Assigned:
		what = "was assigned to you"
	case escalation.Decided, escalation.Ended:
		what = it.Status
	default:
	}
	amount := ""
	if at := stake(it); at != nil {
		amount = ", " + escalation.Money(at.Value, at.Currency)
	}
	return fmt.Sprintf("[%s] %s%s: %s", it.Urgency, it.By, amount, what)
}

// text returns the body of the mail. Text of others is cleaned and quoted, under a
// line of ours that names its author.
func text(note Notification) string {
	if note.Enrolled != nil {
		return enrolledText(note)
	}
	if note.Asked != nil {
		return askedText(note)
	}
	if note.Week != nil {
		return digestText(note)
	}
	if note.Due != nil {
		return dueText(note)
	}
	it := &note.Item
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s\n\n", subject(note))
	line("Reason", it.Reason)
	line("Urgency", it.Urgency)
	if it.Amount != nil {
		line("At stake", render.Clean(escalation.Money(it.Amount.Value, it.Amount.Currency)))
	}
	line("Stand-in for", string(note.Event.Absent))
	for _, a := range it.Counterparties {
		line("With", string(a))
	}
	if at, err := time.Parse(time.RFC3339Nano, it.AnswerDue()); err == nil {
		line("Due", at.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	if it.IfUnanswered != nil {
		line("Otherwise", it.IfUnanswered.Then)
	}
	if note.Event.Kind == escalation.Transferred && note.Event.Text != "" {
		quote(&b, "Handed over because", note.Event.Text)
	}
	if a, decided := allows(note); decided {
		quote(&b, "Your agent may agree to", render.Allows(a, render.StakeOf(it)))
	}
	whose := "In your agent's words"
	if it.Dispute != "" {
		whose = "In the words of " + string(it.By)
	}
	quote(&b, whose, plain(it.Context))
	quote(&b, "Your agent suggests", it.SuggestedAction)
	if ofCounterparty(it) {
		quote(&b, "Written by the counterparty (their word, not a fact)", it.Proposal.Subject)
	}
	fmt.Fprintf(&b, "\nDecide at %s\n\nOpening the link decides nothing: you sign in there, read, and sign the decision.\n", note.Link)
	if it.TermsHash != "" && it.Status == "open" && !it.Confirms() {
		b.WriteString("An approval allows exactly the terms that you see there, unless you set bounds.\n")
	}
	return b.String()
}

// enrolledText returns the body of the mail about an enrolled device.
func enrolledText(note Notification) string {
	e := note.Enrolled
	var b strings.Builder
	fmt.Fprintf(&b, "A browser was enrolled for %s at %s.\nWhat its key signs counts as yours.\n", e.Human, e.At.UTC().Format("2 January 2006, 15:04 UTC"))
	quote(&b, "It was called", e.Device.Name)
	fmt.Fprintf(&b, `
If this was not you, revoke the key at once, under Settings in the inbox, or have an operator do it:

  parley human unenrol %s %s

The inbox is at %s
`, e.Human, e.Device.Key, note.Link)
	return b.String()
}

// askedText returns the body of the mail about a check.
func askedText(note Notification) string {
	a := note.Asked
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks %s to check something.\n\n", a.From, a.Human)
	fmt.Fprintf(&b, "  %-12s %s\n", "Authority", a.Authority)
	if a.OnBehalfOf != a.From {
		fmt.Fprintf(&b, "  %-12s %s\n", "For", a.OnBehalfOf)
	}
	if until, err := time.Parse(time.RFC3339Nano, a.ValidUntil); err == nil {
		fmt.Fprintf(&b, "  %-12s %s\n", "Until", until.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	whose := "In its own words"
	if a.From.Organisation() != a.Human.Organisation() {
		whose = "Written by another organisation (their word, not a fact)"
	}
	quote(&b, whose, a.Scope)
	fmt.Fprintf(&b, "\nAnswer at %s\n\nOpening the link answers nothing: you sign in there, read, and sign what you send.\n", note.Link)
	return b.String()
}

func ofCounterparty(it *api.EscalationItem) bool {
	return it.Proposal != nil && it.Proposal.By.Organisation() != it.Organisation
}

// longest is the most characters of one text that a mail quotes.
const longest = 1500

func quote(b *strings.Builder, whose, text string) {
	if text == "" {
		return
	}
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + " …"
	}
	fmt.Fprintf(b, "\n%s:\n", whose)
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("> " + render.Clean(strings.TrimSuffix(line, "\r")) + "\n")
	}
}

// plain returns the value of a JSON string, or other JSON as it is.
func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}
