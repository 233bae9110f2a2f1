package inbox

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox/amount"
	"github.com/parley-asp/parley/session"
)

// dealsPageSize is the number of deals on a page.
const dealsPageSize = 100

// deals is a page of the reader's deals, those that it asks for.
type deals struct {
	Rows   []dealRow
	Asked  dealFilters
	States []string
	Sorts  []string
	More   string // link to the next page
	Export string
	Plain  bool // nothing is asked for
}

// dealFilters are what a page asks for. The days are of UTC.
type dealFilters struct {
	api.ListSessions
	From, To string
	Most     string        // the least amount, as it was typed
	Least    amount.Answer // how that is understood
	Readings []tab         // links to what it may mean, if there are several
	Sort     string
}

// How deals can be sorted.
const (
	byStart   = "newest"
	byUpdate  = "last change"
	byAmount  = "amount"
	byWaiting = "longest waiting"
)

// A dealRow is one deal in a list.
type dealRow struct {
	api.SessionSummary
	Title    string
	Standing string
	Tone     string
	WaitsFor string
	Since    time.Time
	Changed  time.Time
	Amount   string
	value    float64
}

// dealStates are what a reader can filter by.
var dealStates = []string{api.OpenSessions, api.EndedSessions, "ESCALATED", "CONVERSING", "AGREEING", "EXECUTING", "CLOSED", "FAILED"}

func askedDeals(r *http.Request) dealFilters {
	q := r.URL.Query()
	f := dealFilters{
		ListSessions: api.ListSessions{
			State: q.Get("state"), With: strings.TrimSpace(q.Get("with")), Search: q.Get("search"), Limit: dealsPageSize, Cursor: q.Get("cursor"),
		},
		From: q.Get("from"), To: q.Get("until"), Most: q.Get("amount"), Sort: q.Get("sort"),
	}
	if f.From != "" {
		f.Since = dayIn(f.From, time.UTC, 0)
	}
	if f.To != "" {
		f.Until = dayIn(f.To, time.UTC, 1)
	}
	if f.Most != "" {
		f.Least = locale(r).Read(amount.Asked{Typed: f.Most})
		f.Readings = f.readings()
	}
	return f
}

// readings are links to what an amount that can be read in several ways may mean.
func (f *dealFilters) readings() (all []tab) {
	for _, c := range f.Least.Choices {
		q := f.query()
		plain := string(c.Value)
		if _, part, has := strings.Cut(plain, "."); has && len(part) == 3 {
			plain += "0" // so that it is no group of three digits
		}
		q.Set("amount", strings.TrimSpace(plain+" "+c.Currency))
		all = append(all, tab{Name: c.Shown, Link: link("sessions", q.Encode())})
	}
	return all
}

// misses reports whether a deal is below the amount that is asked for.
func (f *dealFilters) misses(a *escalation.Amount) bool {
	if f.Least.Value == "" {
		return false // none is asked for, or it is not understood
	}
	if a == nil || f.Least.Currency != "" && !strings.EqualFold(a.Currency, f.Least.Currency) {
		return true
	}
	worth, ok := amount.Parse(plainly(a.Value))
	return !ok || worth.Compare(f.Least.Value) < 0
}

// query is the filters as a URL query, without a cursor.
func (f *dealFilters) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "with": f.With, "search": f.Search, "from": f.From, "until": f.To, "amount": f.Most, "sort": f.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// deals reads a page of deals. A sort other than the newest first is of the page.
func (i *Inbox) deals(r *http.Request, who *person) (*deals, error) {
	f := askedDeals(r)
	page, err := ask(r.Context(), i, who.Agent, api.SessionList, f.ListSessions)
	if err != nil {
		return nil, err
	}
	q := f.query()
	d := &deals{
		Asked: f, States: dealStates, Sorts: []string{byStart, byUpdate, byAmount, byWaiting}, Export: link("deals.csv", q.Encode()), Plain: len(q) == 0,
		Rows: i.rows(page.Sessions, &f),
	}
	if page.Next != "" {
		q.Set("cursor", page.Next)
		d.More = link("sessions", q.Encode())
	}
	return d, nil
}

// rows words deals, leaves out those below the amount that is asked for, and sorts them.
func (i *Inbox) rows(all []api.SessionSummary, f *dealFilters) []dealRow {
	rows := make([]dealRow, 0, len(all))
	for _, s := range all {
		if !f.misses(s.Amount) {
			rows = append(rows, i.dealRow(s))
		}
	}
	switch f.Sort {
	case byAmount:
		slices.SortStableFunc(rows, func(a, b dealRow) int { return cmp.Compare(b.value, a.value) })
	case byUpdate:
		slices.SortStableFunc(rows, func(a, b dealRow) int { return b.Changed.Compare(a.Changed) })
	case byWaiting:
		slices.SortStableFunc(rows, func(a, b dealRow) int {
			switch {
			case a.Since.IsZero() || b.Since.IsZero():
				return b.Since.Compare(a.Since)
			default:
				return a.Since.Compare(b.Since)
			}
		})
	}
	return rows
}

func (i *Inbox) dealRow(s api.SessionSummary) dealRow {
	row := dealRow{SessionSummary: s, Title: cmp.Or(oneLine(s.Purpose), "Session "+string(s.Session)), Changed: stamp(s.Updated)}
	row.Standing, row.Tone = standing(s.State, s.Closing)
	if s.Amount != nil {
		row.Amount, row.value = render.Money(s.Amount.Value, s.Amount.Currency), s.Amount.Value
	}
	if s.Waiting == nil {
		return row
	}
	row.Since = stamp(s.Waiting.Since)
	var names []string
	for _, a := range s.Waiting.For {
		names = append(names, i.called(a))
	}
	if row.WaitsFor = strings.Join(names, ", "); len(names) == 0 {
		row.WaitsFor = "a human"
	}
	return row
}

// exportDeals sends the deals that the filters show as CSV (RFC 4180).
func (i *Inbox) exportDeals(w http.ResponseWriter, r *http.Request, who *person) {
	f := askedDeals(r)
	if f.Least.Fault != "" {
		i.trouble(w, r, who, session.Refuse(session.SchemaInvalid, "the least amount is not clear. %s", f.Least.Fault))
		return
	}
	f.Limit, f.Cursor = api.MaxPage, ""
	s := newSheet("session", "purpose", "state", "outcome", "agreed", "amount", "currency", "parties", "openedAt", "changedAt", "waitsFor", "waitsSince")
	for !s.full() {
		page, err := ask(r.Context(), i, who.Agent, api.SessionList, f.ListSessions)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		for _, row := range i.rows(page.Sessions, &f) {
			s.add(exportedDeal(row)...)
		}
		if page.Next == "" {
			break
		}
		f.Cursor = page.Next
	}
	s.send(w, r, "deals.csv")
}

func exportedDeal(s dealRow) []string {
	var amount, currency, waits, since string
	if s.SessionSummary.Amount != nil {
		amount, currency = plainly(s.value), s.SessionSummary.Amount.Currency
	}
	if s.Waiting != nil {
		waits, since = uris(s.Waiting.For), s.Waiting.Since
	}
	return []string{
		string(s.Session), s.Purpose, s.State.String(), s.Closing, strconv.FormatBool(s.Agreed), amount, currency, uris(s.Parties),
		s.Created, s.Updated, waits, since,
	}
}
