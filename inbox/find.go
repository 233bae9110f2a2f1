package inbox

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

// The bounds of a search of everything, for each kind.
const (
	mostFound  = 6   // that are shown
	lookedAt   = 200 // the newest, of which also what is nearly so written is found
	longSearch = 80  // characters of what is searched for
)

// findings are what a search of everything finds for the reader.
type findings struct {
	Query  string
	Groups []foundGroup
	Total  int
}

type foundGroup struct {
	Name string
	Rows []foundRow
}

// A foundRow leads somewhere, or does something that the page can do.
type foundRow struct {
	Title, Note, Amount string
	Link, Do            string
	Number              int
	score               int
	text                string // that is searched
}

// places are the pages and what people often do there.
var places = []foundRow{
	{Title: "Home", Note: "what waits, what was agreed, what failed", Link: "home"},
	{Title: "Inbox", Note: "items to decide", Link: "./"},
	{Title: "My items", Note: "claimed by you, or handed to you", Link: "./?claimed=me"},
	{Title: "Unclaimed items", Link: "./?claimed=nobody"},
	{Title: "Decided items", Note: "history of approvals and denials", Link: "./?status=resolved"},
	{Title: "Checks", Note: "what agents ask you to check", Link: "checks"},
	{Title: "Deals", Note: "negotiations, sessions", Link: "sessions"},
	{Title: "Deals that wait for people", Note: "escalated", Link: "sessions?state=ESCALATED"},
	{Title: "Failed deals", Link: "sessions?state=FAILED"},
	{Title: "What is due", Note: "obligations, deliveries, overdue", Link: "due"},
	{Title: "Disputes", Note: "claims, replies, decisions of arbiters", Link: "disputes"},
	{Title: "Export deals as CSV", Note: "download", Link: "deals.csv"},
	{Title: "Export what is due as CSV", Note: "download", Link: "due.csv"},
	{Title: "Export decisions as CSV", Note: "download", Link: "decided.csv?status=resolved"},
	{Title: "Agreements", Note: "what was agreed", Link: "agreements"},
	{Title: "Agents", Note: "the registry", Link: "agents"},
	{Title: "Insights", Note: "charts and counts", Link: "insights"},
	{Title: "Settings", Note: "keys, time zone, notifications", Link: "settings"},
	{Title: "Out of office", Note: "name a stand-in", Link: "settings#away"},
	{Title: "Keyboard shortcuts", Note: "help", Do: "help"},
	{Title: "Sign out", Do: "leave"},
}

// find searches everything that the reader may see, by the verbs that the reader may call.
func (i *Inbox) find(r *http.Request, who *person) (*findings, error) {
	query := strings.Join(strings.Fields(clipped(r.URL.Query().Get("search"), longSearch)), " ")
	f := &findings{Query: query}
	sources := []struct {
		name string
		rows func(*http.Request, *person, string) ([]foundRow, error)
	}{{"Items", i.findItems}, {"Deals", i.findDeals}, {"Agreements", i.findAgreements}, {"Checks", i.findChecks}, {"Agents", i.findAgents}}
	if query == "" {
		sources = nil
	}
	for _, source := range sources {
		rows, err := source.rows(r, who, query)
		if err != nil && !refused(err) { // what the reader may not ask for finds nothing
			return nil, err
		}
		f.add(source.name, rows)
	}
	f.add("Pages and actions", places)
	return f, nil
}

// add ranks what a source found, and keeps the best.
func (f *findings) add(name string, all []foundRow) {
	words := strings.Fields(strings.ToLower(f.Query))
	var kept []foundRow
	seen := map[string]bool{}
	for _, row := range all {
		row.score = rank(words, strings.ToLower(row.Title+" "+row.Note+" "+row.Amount+" "+row.text))
		if key := row.Link + row.Do; row.score > 0 && !seen[key] {
			seen[key] = true
			kept = append(kept, row)
		}
	}
	slices.SortStableFunc(kept, func(a, b foundRow) int { return cmp.Compare(b.score, a.score) })
	if len(words) > 0 {
		kept = kept[:min(len(kept), mostFound)]
	}
	for n := range kept {
		f.Total++
		kept[n].Number = f.Total
	}
	if len(kept) > 0 {
		f.Groups = append(f.Groups, foundGroup{name, kept})
	}
}

// rank says how well a text has all of some words: as the beginning of a word, within one, or with a slip of
// one letter; 0 for not.
func rank(words []string, text string) int {
	score := 1
	parts := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		starts := func(part string) bool { return strings.HasPrefix(part, word) }
		near := func(part string) bool { return slips([]rune(word), []rune(part)) }
		switch {
		case slices.ContainsFunc(parts, starts):
			score += 3
		case strings.Contains(text, word):
			score += 2
		case slices.ContainsFunc(parts, near):
			score++
		default:
			return 0
		}
	}
	return score
}

// slips reports whether a word of four letters or more is another's beginning but for one letter that is
// wrong, missing, too many, or has changed places with the next.
func slips(word, of []rune) bool {
	if len(word) < 4 {
		return false
	}
	n := 0
	for n < len(word) && n < len(of) && word[n] == of[n] {
		n++
	}
	begins := func(a, b []rune) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }
	rest, other := word[n:], of[n:]
	switch {
	case len(rest) == 0, len(other) == 0:
		return len(rest) <= 1
	case begins(rest[1:], other[1:]), begins(rest[1:], other), begins(rest, other[1:]):
		return true
	}
	return len(rest) > 1 && len(other) > 1 && rest[0] == other[1] && rest[1] == other[0] && begins(rest[2:], other[2:])
}

func (i *Inbox) findItems(r *http.Request, who *person, query string) (rows []foundRow, err error) {
	for _, q := range []api.ListEscalations{{Status: "all", Search: query, Limit: mostFound}, {Limit: lookedAt}} {
		list, err := ask(r.Context(), i, who.Agent, api.EscalationList, q)
		if err != nil {
			return nil, err
		}
		for n := range list.Escalations {
			shown := i.row(&list.Escalations[n], who.Agent)
			row := foundRow{Title: shown.Title, Note: strings.TrimSuffix(shown.Asks+" with "+shown.With, " with "), Amount: shown.Amount, Link: "items/" + shown.ID, text: shown.ID + " " + string(list.Escalations[n].Session)}
			if q.Search != "" {
				row.text += " " + query // the broker found it, maybe by a text that the row does not have
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (i *Inbox) findDeals(r *http.Request, who *person, query string) (rows []foundRow, err error) {
	for _, q := range []api.ListSessions{{Search: query, Limit: mostFound}, {Limit: lookedAt}} {
		page, err := ask(r.Context(), i, who.Agent, api.SessionList, q)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Sessions {
			d := i.dealRow(s)
			rows = append(rows, foundRow{Title: d.Title, Note: i.others(s.Parties, who) + " · " + d.Standing, Amount: d.Amount, Link: "sessions/" + string(s.Session), text: uris(s.Parties) + " " + string(s.Session)})
		}
	}
	return rows, nil
}

// others names the parties of other organisations.
func (i *Inbox) others(parties []performatives.Agent, who *person) string {
	var names []string
	for _, a := range parties {
		if a.Organisation() != who.Agent.Organisation() {
			names = append(names, i.called(a)+" · "+organisation(a))
		}
	}
	return strings.Join(names, ", ")
}

func (i *Inbox) findAgreements(r *http.Request, who *person, _ string) (rows []foundRow, err error) {
	page, err := ask(r.Context(), i, who.Agent, api.AgreementList, api.ListAgreements{Limit: lookedAt})
	for _, a := range page.Agreements {
		row := foundRow{Title: cmp.Or(oneLine(a.Subject), "An agreement"), Note: "agreed " + render.Moment(stamp(a.AcceptedAt)), Link: "sessions/" + string(a.Session), text: string(a.Agreement) + " " + string(a.Session) + " " + a.Category}
		if a.Amount != nil {
			row.Amount = render.Money(a.Amount.Value, a.Amount.Currency)
		}
		for _, p := range a.Parties {
			row.text += " " + string(p)
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (i *Inbox) findChecks(r *http.Request, who *person, _ string) (rows []foundRow, err error) {
	list, err := ask(r.Context(), i, who.Agent, api.CheckList, api.ListChecks{Status: api.AllChecks, Limit: lookedAt})
	for n := range list.Checks {
		c := &list.Checks[n]
		rows = append(rows, foundRow{Title: oneLine(c.Scope), Note: "asked by " + i.called(c.From), Link: "checks/" + string(c.Session), text: c.Purpose + " " + string(c.Session) + " " + string(c.From)})
	}
	return rows, err
}

func (i *Inbox) findAgents(r *http.Request, who *person, query string) (rows []foundRow, err error) {
	for _, q := range []api.SearchAgents{{Query: query, Limit: mostFound}, {Limit: lookedAt}} {
		list, err := ask(r.Context(), i, who.Agent, api.AgentSearch, q)
		if err != nil {
			return nil, err
		}
		for _, card := range list.Agents {
			row := foundRow{Title: cmp.Or(oneLine(card.Name), pathOf(card.Agent)), Note: pathOf(card.Agent) + " · " + organisation(card.Agent), Link: link("agents", values("search", string(card.Agent))), text: card.Description}
			if q.Query != "" {
				row.text += " " + query
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// waiting is how many checks wait for the reader, for the menu.
func (i *Inbox) waiting(r *http.Request, who *person) (string, error) {
	list, err := ask(r.Context(), i, who.Agent, api.CheckList, api.ListChecks{Limit: lookedAt})
	n := 0
	for k := range list.Checks {
		if list.Checks[k].Awaiting {
			n++
		}
	}
	switch {
	case err != nil || n == 0:
		return "", err
	case n > 99 || list.Next != "":
		return "99+", nil
	}
	return plainly(float64(n)), nil
}
