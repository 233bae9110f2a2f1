package inbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// The bounds of what the pages of execution show.
const (
	mostDue   = 10_000 // obligations that are read
	dueRows   = 500    // of a page
	soonIs    = 7 * 24 * time.Hour
	dueOfUs   = "us"
	dueOfThem = "them"
)

// A dueRow is one obligation that is due, or whose delivery waits for an answer.
type dueRow struct {
	api.ObligationRow
	Title          string    // of the deal
	Until          time.Time // zero: it has no date
	Standing, Tone string
	Much           string // how much is still due
	Worth          string // what it is about in money; "" for nothing
	Link           string
	Over           bool // nothing is due any more
	Paused         bool // the time in which a delivery is answered stands still
}

// dues is what is due, by time.
type dues struct {
	Groups []dueGroup
	Tabs   []tab
	Asked  string // dueOfUs, dueOfThem, or "" for both
	Export string
	More   int  // rows that the page leaves out
	Cut    bool // there is more than was read
	Now    time.Time
}

type dueGroup struct {
	ID, Name string
	Rows     []dueRow
}

func (i *Inbox) due(r *http.Request, who *person) (*dues, error) {
	asked := r.URL.Query().Get("by")
	rows, cut, err := i.allDue(r.Context(), who.Agent, asked, "")
	if err != nil {
		return nil, err
	}
	d := &dues{Asked: asked, Export: link("due.csv", values("by", asked)), Cut: cut, Now: i.Now()}
	for _, t := range []tab{{Name: "All"}, {Name: "By your side", Link: dueOfUs}, {Name: "By the other side", Link: dueOfThem}} {
		d.Tabs = append(d.Tabs, tab{Name: t.Name, Link: link("due", values("by", t.Link)), Chosen: t.Link == asked})
	}
	d.More = max(0, len(rows)-dueRows)
	overdue, soon, later, undated := dueGroup{ID: "overdue", Name: "Overdue"}, dueGroup{ID: "soon", Name: "In the next seven days"}, dueGroup{ID: "later", Name: "Later"}, dueGroup{ID: "undated", Name: "Without a date"}
	for _, row := range rows[:len(rows)-d.More] {
		into := &later
		switch {
		case row.overdue(d.Now):
			into = &overdue
		case row.Until.IsZero():
			into = &undated
		case row.Until.Before(d.Now.Add(soonIs)):
			into = &soon
		}
		into.Rows = append(into.Rows, row)
	}
	for _, g := range []dueGroup{overdue, soon, later, undated} {
		if len(g.Rows) > 0 {
			d.Groups = append(d.Groups, g)
		}
	}
	return d, nil
}

// A dueNow is what is overdue, and due soon, for a line and rows above the queue.
type dueNow struct {
	Overdue, Soon int
	Rows          []dueRow // the most urgent
	Now           time.Time
}

// queuedDue is how many rows of what is due stand above the queue.
const queuedDue = 5

func (i *Inbox) dueNow(r *http.Request, who *person) (n dueNow, err error) {
	rows, _, err := i.allDue(r.Context(), who.Agent, "", i.soon())
	n.Now = i.Now()
	for _, row := range rows {
		switch {
		case row.overdue(n.Now):
			n.Overdue++
		case !row.Until.IsZero() && row.Until.Before(n.Now.Add(soonIs)):
			n.Soon++
		default:
			continue
		}
		if len(n.Rows) < queuedDue {
			n.Rows = append(n.Rows, row)
		}
	}
	return n, err
}

// overdue reports whether the time of what is due has passed.
func (d *dueRow) overdue(now time.Time) bool {
	return d.Status == session.ObligationBreached || !d.Until.IsZero() && d.Until.Before(now) && !d.Paused
}

var overObligations = []string{
	session.ObligationFulfilled, session.ObligationDeemed, session.ObligationLate, session.ObligationWaived, session.ObligationReleased,
}

// allDue reads what is due in a caller's deals before a time, the first due first, and reports whether there
// is more. "" is any time, and what has no date.
func (i *Inbox) allDue(ctx context.Context, as performatives.Agent, asked, before string) (rows []dueRow, more bool, err error) {
	q := api.ListObligations{Before: before, Limit: api.MaxObligations}
	switch asked {
	case "":
	case dueOfUs:
		q.Awaiting = api.AwaitingMe
	case dueOfThem:
		q.Awaiting = api.AwaitingOthers
	default:
		return nil, false, session.Refuse(session.SchemaInvalid, "by is %s or %s", dueOfUs, dueOfThem)
	}
	for {
		page, err := ask(ctx, i, as, api.ObligationList, q)
		if err != nil {
			return nil, false, err
		}
		for n := range page.Obligations {
			rows = append(rows, newDueRow(page.Obligations[n]))
		}
		if q.Cursor = page.Next; q.Cursor == "" || len(rows) >= mostDue {
			return rows, q.Cursor != "", nil
		}
	}
}

// soon is the end of what is due soon.
func (i *Inbox) soon() string { return api.Timestamp(i.Now().Add(soonIs)) }

// newDueRow is an obligation of a deal, for whoever has to do something next.
func newDueRow(o api.ObligationRow) dueRow {
	row := dueRow{ObligationRow: o, Title: cmp.Or(oneLine(o.Purpose), "Deal"), Until: stamp(o.Due), Much: muchOf(&o.ObligationView)}
	row.Standing, row.Tone = obligationStanding(o.Status)
	row.Link = link("sessions/"+string(o.Session)+"/obligation", values("commitment", o.Commitment, "obligation", o.ID))
	row.Over, row.Paused = slices.Contains(overObligations, o.Status), o.Delivery != nil && o.Delivery.Paused
	if o.Amount != nil {
		row.Worth = render.Money(o.Amount.Value, o.Amount.Currency)
	}
	return row
}

// dueRowIn is an obligation of a deal.
func dueRowIn(deal *api.Snapshot, o api.ObligationView) dueRow {
	return newDueRow(api.ObligationRowOf(deal.Session, deal.Purpose, o))
}

// muchOf says how much of an obligation is still due; "" if it has no quantity.
func muchOf(o *api.ObligationView) string {
	if o.Quantity == nil || o.Remains == nil {
		return ""
	}
	return oneLine(plainly(*o.Remains) + " of " + plainly(*o.Quantity) + " " + o.Unit)
}

// obligationStanding says in words where an obligation stands.
func obligationStanding(status string) (text, tone string) {
	switch status {
	case session.ObligationAsserted:
		return "Delivered, to be answered", "accent"
	case session.ObligationBreached:
		return "Breached", "bad"
	case session.ObligationLate:
		return "Fulfilled late", "warn"
	case session.ObligationDisputed:
		return "Disputed", "warn"
	case session.ObligationPartial:
		return "Partly fulfilled", ""
	case session.ObligationFulfilled:
		return "Fulfilled", "good"
	case session.ObligationDeemed:
		return "Counts as fulfilled", "good"
	}
	return sentence(oneLine(status)), ""
}

// exportDue sends what is due as CSV.
func (i *Inbox) exportDue(w http.ResponseWriter, r *http.Request, who *person) {
	rows, _, err := i.allDue(r.Context(), who.Agent, r.URL.Query().Get("by"), "")
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	s := newSheet("session", "purpose", "commitment", "obligation", "party", "action", "status", "waitsFor", "due", "deadline", "quantity", "remains", "unit", "amount", "currency", "breaches")
	for _, row := range rows {
		if s.full() {
			break
		}
		var value, currency, quantity, remains string
		if a := row.Amount; a != nil {
			value, currency = plainly(a.Value), a.Currency
		}
		if row.Quantity != nil {
			quantity = plainly(*row.Quantity)
		}
		if row.Remains != nil {
			remains = plainly(*row.Remains)
		}
		due := ""
		if !row.Until.IsZero() {
			due = api.Timestamp(row.Until)
		}
		s.add(string(row.Session), row.Title, row.Commitment, row.ID, string(row.Party), row.Action, row.Status, uris(row.For), due, row.Deadline,
			quantity, remains, row.Unit, value, currency, strconv.Itoa(row.Breaches))
	}
	s.send(w, r, "due.csv")
}
