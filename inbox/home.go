package inbox

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// home is what an owner sees first: what waits and for whom, what was agreed this week and what it is
// worth, and what failed.
type home struct {
	Waits  []waiters
	Agreed []dealRow
	Worth  []string // sums, one for each currency
	Failed []dealRow
	Due    []dueRow // what is overdue, or due soon
	Later  int      // of these, those that are left out
	Since  time.Time
	Now    time.Time
	Items  int  // escalations that are open
	Cut    bool // there are more deals than were looked at
}

// A waiters is who is waited for, and the deals that wait, the longest first.
type waiters struct {
	Who  string
	Rows []dealRow
	More int
}

const (
	homeDays  = 7
	homeRows  = 10    // of a list on the page
	homeReads = 5_000 // deals that the page looks at
)

func (i *Inbox) home(r *http.Request, who *person) (*home, error) {
	h := &home{Since: i.Now().AddDate(0, 0, -homeDays), Now: i.Now()}
	items, err := ask(r.Context(), i, who.Agent, api.EscalationList, api.ListEscalations{Limit: 1})
	if err != nil && !refused(err) {
		return nil, err
	}
	h.Items = items.Counts.Open
	open, err := i.all(r.Context(), who, api.ListSessions{State: api.OpenSessions}, h)
	if err != nil {
		return nil, err
	}
	ended, err := i.all(r.Context(), who, api.ListSessions{State: api.EndedSessions, Since: api.Timestamp(h.Since)}, h)
	if err != nil {
		return nil, err
	}
	due, cut, err := i.allDue(r.Context(), who.Agent, "", i.soon())
	if err != nil {
		return nil, err
	}
	h.Cut = h.Cut || cut
	h.due(due)
	h.waits(open, who.Agent.Organisation())
	h.ends(append(ended, open...))
	return h, nil
}

// all reads the deals that are asked for, up to a bound.
func (i *Inbox) all(ctx context.Context, who *person, q api.ListSessions, h *home) (rows []dealRow, err error) {
	q.Limit = api.MaxPage
	for {
		page, err := ask(ctx, i, who.Agent, api.SessionList, q)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Sessions {
			rows = append(rows, i.dealRow(s))
		}
		switch {
		case page.Next == "":
			return rows, nil
		case len(rows) >= homeReads:
			h.Cut = true
			return rows, nil
		}
		q.Cursor = page.Next
	}
}

// waits sorts open deals by whom they wait for.
func (h *home) waits(open []dealRow, us performatives.Organisation) {
	groups := []waiters{{Who: "People"}, {Who: "Your agents"}, {Who: "The other side"}}
	for _, row := range open {
		switch {
		case row.State == session.Escalated:
			groups[0].Rows = append(groups[0].Rows, row)
		case row.Waiting == nil || len(row.Waiting.For) == 0:
		case slices.ContainsFunc(row.Waiting.For, func(a performatives.Agent) bool { return a.Organisation() == us }):
			groups[1].Rows = append(groups[1].Rows, row)
		default:
			groups[2].Rows = append(groups[2].Rows, row)
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.Rows, func(a, b dealRow) int { return a.Since.Compare(b.Since) })
		g.More = max(0, len(g.Rows)-homeRows)
		g.Rows = g.Rows[:len(g.Rows)-g.More]
		h.Waits = append(h.Waits, g)
	}
}

// due keeps what is overdue, or due soon.
func (h *home) due(rows []dueRow) {
	for _, row := range rows {
		switch {
		case !row.overdue(h.Now) && (row.Until.IsZero() || row.Until.After(h.Now.Add(soonIs))):
		case len(h.Due) == homeRows:
			h.Later++
		default:
			h.Due = append(h.Due, row)
		}
	}
}

// ends sorts the deals of the week into those that were agreed, and those that failed.
func (h *home) ends(week []dealRow) {
	sums := map[string]float64{}
	for _, row := range week {
		switch {
		case row.Changed.Before(h.Since):
		case row.Agreed:
			if a := row.SessionSummary.Amount; a != nil {
				sums[cmp.Or(a.Code(), "no currency")] += a.Value
			}
			h.Agreed = append(h.Agreed, row)
		case row.Tone == "bad":
			h.Failed = append(h.Failed, row)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(sums)) {
		h.Worth = append(h.Worth, render.Money(sums[code], code))
	}
}
