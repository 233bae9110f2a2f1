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
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

// post is mail to the people of one organisation.
type post struct {
	mail *Mail
	smtp *SMTP
}

func (p *post) wants(k escalation.Kind) bool { return slices.Contains(p.mail.Events, k) }

// tell sends one mail to each who is to know. Who is told twice after a failure
// gets the same Message-ID, which mailboxes show once.
func (p *post) tell(ctx context.Context, news News, _ time.Time) (who string, err error) {
	if news.Enrolled == nil && news.Item.Status != "open" && !slices.Contains([]escalation.Kind{escalation.Decided, escalation.Ended}, news.Event.Kind) {
		return "", nil // it is over by now: nobody is to act on it any more
	}
	to := p.to(news)
	if len(to) == 0 {
		return "", nil
	}
	from := p.smtp.From
	var letters []*mail.Msg
	for n, address := range to {
		m := mail.NewMsg(mail.WithEncoding(mail.EncodingQP), mail.WithNoDefaultUserAgent())
		if err := m.From(from); err != nil {
			return "", fmt.Errorf("%w: %w", err, errHopeless)
		}
		if err := m.To(address); err != nil {
			return "", fmt.Errorf("%w: %w", err, errHopeless)
		}
		m.SetMessageIDWithValue(fmt.Sprintf("%s.%d@parley", news.ID, n))
		m.SetGenHeader("Auto-Submitted", "auto-generated")
		m.Subject(subject(news))
		m.SetBodyString(mail.TypeTextPlain, text(news))
		letters = append(letters, m)
	}
	client, err := mail.NewClient(p.smtp.host, p.smtp.options()...)
	if err != nil {
		return "", err
	}
	return "mail to " + strings.Join(to, ", "), client.DialAndSendWithContext(ctx, letters...)
}

func (s *SMTP) options() []mail.Option {
	o := []mail.Option{
		mail.WithPort(s.port), mail.WithTimeout(attempt),
		mail.WithTLSConfig(&tls.Config{ServerName: s.host, RootCAs: s.trusts, MinVersion: tls.VersionTLS12}),
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

// to are the addresses of those whose turn it is, and of those always told.
func (p *post) to(news News) []string {
	var people []performatives.Agent
	switch {
	case news.Enrolled != nil: // nobody else's affair, and nobody's who gets what is always told
		if address := p.mail.People[news.Enrolled.Human]; address != "" {
			return []string{address}
		}
		return nil
	case news.Event.To != "":
		people = []performatives.Agent{news.Event.To}
	case news.Item.Route != nil && news.Event.Level < len(news.Item.Route.Levels):
		people = news.Item.Route.Levels[news.Event.Level].Approvers
	}
	if len(people) == 0 { // everybody who may decide
		for a := range p.mail.People {
			people = append(people, a)
		}
		slices.Sort(people)
	}
	to := slices.Clone(p.mail.Always)
	for _, a := range people {
		if address := p.mail.People[a]; address != "" && !slices.Contains(to, address) {
			to = append(to, address)
		}
	}
	return to
}

// subject is ours alone: no word of the counterparty's is in it.
func subject(news News) string {
	if news.Enrolled != nil {
		return "A browser can sign your decisions from now on"
	}
	it := &news.Item
	what := "needs a decision"
	switch news.Event.Kind {
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
	if it.Amount != nil {
		amount = ", " + render.Clean(escalation.Money(it.Amount.Value, it.Amount.Currency))
	}
	return fmt.Sprintf("[%s] %s%s: %s", it.Urgency, it.By, amount, what)
}

// text is the mail. Every stranger's line is quoted, cleaned, and under a line
// of ours that says whose it is.
func text(news News) string {
	if news.Enrolled != nil {
		return enrolledText(news)
	}
	it := &news.Item
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s\n\n", subject(news))
	line("Reason", it.Reason)
	line("Urgency", it.Urgency)
	if it.Amount != nil {
		line("At stake", render.Clean(escalation.Money(it.Amount.Value, it.Amount.Currency)))
	}
	for _, a := range it.Theirs {
		line("With", string(a))
	}
	if at, err := time.Parse(time.RFC3339Nano, due(it)); err == nil {
		line("Due", at.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	if it.IfUnanswered != nil {
		line("Otherwise", it.IfUnanswered.Then)
	}
	if news.Event.Kind == escalation.Transferred && news.Event.Text != "" {
		quote(&b, "Handed over because", news.Event.Text)
	}
	quote(&b, "In your agent's words", plain(it.Context))
	quote(&b, "Your agent suggests", it.SuggestedAction)
	if theirs(it) {
		quote(&b, "Written by the counterparty (their word, not a fact)", it.Proposal.Subject)
	}
	fmt.Fprintf(&b, "\nDecide at %s\n\nOpening the link decides nothing: you sign in there, read, and sign the decision.\n", news.Link)
	return b.String()
}

// enrolledText says what was enrolled, and what to do if it was somebody else.
func enrolledText(news News) string {
	e := news.Enrolled
	var b strings.Builder
	fmt.Fprintf(&b, "A browser was enrolled for %s at %s.\nWhat its key signs counts as yours.\n", e.Human, e.At.UTC().Format("2 January 2006, 15:04 UTC"))
	quote(&b, "It was called", e.Device.Name)
	fmt.Fprintf(&b, `
If this was not you, have an operator take the key away, at once:

  parley human unenrol %s %s

The inbox is at %s
`, e.Human, e.Device.Key, news.Link)
	return b.String()
}

func theirs(it *api.EscalationItem) bool {
	return it.Proposal != nil && it.Proposal.By.Organisation() != it.Organisation
}

// longest is how much of one text a mail quotes.
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

// plain is a text without its quotes, or JSON as it is.
func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}
