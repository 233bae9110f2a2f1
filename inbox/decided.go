package inbox

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// ofEnded are the filters of what was decided, in a URL.
var ofEnded = []string{"outcome", "by", "from", "until", "zone"}

// ended parses the filters of what was decided. A day or a zone that is none is left
// as it is, and the broker refuses it.
func (f *filters) ended(q url.Values) {
	f.Outcome, f.DecidedBy = q.Get("outcome"), performatives.Agent(strings.TrimSpace(q.Get("by")))
	zone := time.UTC
	if len(f.Zone) <= 64 {
		if z, err := time.LoadLocation(f.Zone); err == nil {
			zone = z
		}
	}
	f.DecidedFrom, f.DecidedUntil = dayIn(f.From, zone, 0), dayIn(f.Until, zone, 1)
}

// dayIn returns when a day begins, a number of days later.
func dayIn(day string, zone *time.Location, later int) string {
	t, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		return day
	}
	return t.AddDate(0, 0, later).Format(time.RFC3339)
}

// inFull completes the short name of a colleague.
func inFull(name, me performatives.Agent) performatives.Agent {
	if name == "" || strings.Contains(string(name), "://") {
		return name
	}
	return performatives.Agent("human://" + organisation(me) + "/" + string(name))
}

// shownEarlier are the earlier items about a counterparty on a page.
const shownEarlier = 5

// earlier returns the newest other items about the organisation on the other side.
func (i *Inbox) earlier(ctx context.Context, who *person, it *api.EscalationItem) (rows []row, err error) {
	n := slices.IndexFunc(it.Counterparties, func(a performatives.Agent) bool { return a.Organisation() != it.Organisation })
	if n < 0 || who.Agent.Organisation() != it.Organisation {
		return nil, nil
	}
	list, err := ask(ctx, i, who.Agent, api.EscalationList, api.ListEscalations{
		Status: "resolved", Counterparty: it.Counterparties[n].Organisation(), Limit: shownEarlier + 1,
	})
	for k := range list.Escalations {
		if e := &list.Escalations[k]; e.ID != it.ID && len(rows) < shownEarlier {
			rows = append(rows, i.row(e, who.Agent))
		}
	}
	return rows, err
}

// ended is the form above what was decided.
type ended struct {
	Outcomes []string
	People   []performatives.Agent // to choose from: those who decided what is shown
	Export   string                // link
	Narrowed bool
}

func asEnded(q filters, items []api.EscalationItem) *ended {
	if q.Status != "resolved" {
		return nil
	}
	e := &ended{Outcomes: []string{"approved", "modified", "denied", "guidance", "expired", "closed"}, Export: link("decided.csv", filter(q))}
	e.Narrowed = q.Outcome != "" || q.DecidedBy != "" || q.From != "" || q.Until != ""
	for n := range items {
		if by := items[n].DecidedBy; by.IsHuman() && !slices.Contains(e.People, by) {
			e.People = append(e.People, by)
		}
	}
	slices.Sort(e.People)
	return e
}

// export sends what was decided as CSV (RFC 4180), with the filters of the view.
func (i *Inbox) export(w http.ResponseWriter, r *http.Request, who *person) {
	query := r.URL.Query()
	query.Set("status", "resolved")
	q := asked(query)
	q.DecidedBy, q.Limit, q.Cursor = inFull(q.DecidedBy, who.Agent), api.MaxPage, ""
	s := newSheet(
		"item", "session", "outcome", "decidedAt", "decidedBy", "comment", "inForce", "subject", "purpose", "reason", "urgency",
		"askedAt", "askedBy", "onBehalfOf", "counterparties", "amount", "currency",
	)
	for !s.full() {
		page, err := ask(r.Context(), i, who.Agent, api.EscalationList, q.ListEscalations)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		for k := range page.Escalations {
			s.add(exported(&page.Escalations[k])...)
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	s.send(w, r, "decided.csv")
}

func exported(item *api.EscalationItem) []string {
	var comment, inforce, subject, amount, currency string
	for _, v := range item.Votes {
		if v.Decision == item.Status {
			comment = v.Comment
		}
	}
	if g := inForce(item); g != nil {
		inforce = g.String()
		if !g.Until.IsZero() {
			inforce += "; until " + iso(g.Until)
		}
	}
	if item.Proposal != nil {
		subject = item.Proposal.Subject
	}
	if item.Amount != nil {
		amount, currency = strconv.FormatFloat(item.Amount.Value, 'f', -1, 64), item.Amount.Currency
	}
	return []string{
		string(item.ID), string(item.Session), item.Status, item.DecidedAt, string(item.DecidedBy), comment, inforce, subject, item.Purpose, item.Reason,
		item.Urgency, item.At, string(item.By), string(item.OnBehalfOf), uris(item.Counterparties), amount, currency,
	}
}
