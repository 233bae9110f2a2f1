package inbox

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// queuePageSize is the initial number of items on a page.
const queuePageSize = 60

// A queue is a page of the list, and its filter.
type queue struct {
	Rows   []row
	Counts api.EscalationCounts
	Tabs   []tab
	Open   string // the item beside the list
	More   string // link to more items
	Turns  bool   // More leads to the next page
	Shown  int
	Now    time.Time
	Asked  filters
	Query  string // the filter as a URL query
	Plain  string // the same without the search
	Ended  *ended // of the view of what was decided
}

// A tab is one choice of a filter.
type tab struct {
	Group, Name, Link string
	Count             int
	Counted, Chosen   bool
}

// A row is one item in the list.
type row struct {
	ID, Link, Title, Reason, Urgency, Status string
	Asks, With, Org                          string
	Amount                                   string
	Held                                     string // who has claimed or decided it
	Mine                                     bool
	Mark                                     string    // what the reader may do
	Due, At                                  time.Time // At is when it was escalated, or decided
	Open, Current                            bool
	Pick                                     bool // it can be selected, with others
}

// A filters is what a page asks for. The days are of the reader's time zone.
type filters struct {
	api.ListEscalations
	From, Until, Zone string
}

// asked parses filters from a URL query.
func asked(q url.Values) filters {
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > api.MaxPage {
		limit = queuePageSize
	}
	f := filters{api.ListEscalations{
		Status: q.Get("status"), Urgency: q.Get("urgency"), Claimed: q.Get("claimed"), Search: q.Get("search"), Sort: q.Get("sort"), Limit: limit, Cursor: q.Get("cursor"),
	}, q.Get("from"), q.Get("until"), q.Get("zone")}
	if f.Status == "resolved" {
		f.ended(q)
	}
	return f
}

// A choice changes a filter.
type choice func(*filters)

// filter formats a filter as a URL query, without defaults.
func filter(of filters, choices ...choice) string {
	for _, choose := range choices {
		choose(&of)
	}
	q := url.Values{}
	for name, value := range map[string]string{"status": of.Status, "urgency": of.Urgency, "claimed": of.Claimed, "search": of.Search, "sort": of.Sort,
		"outcome": of.Outcome, "by": string(of.DecidedBy), "from": of.From, "until": of.Until, "zone": of.Zone} {
		if value != "" && (name != "sort" || value != api.SortDue) && (name == "status" || of.Status == "resolved" || !slices.Contains(ofEnded, name)) && (name != "status" || value != "open") {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// link returns a relative URL. An empty one would be the current page, so the queue is
// ./ instead.
func link(path, query string) string {
	if query != "" {
		return path + "?" + query
	}
	if path == "" {
		return "./"
	}
	return path
}

func (i *Inbox) wholeQueue(r *http.Request, who *person) (*panes, error) {
	q, err := i.queue(r, who, "")
	return &panes{Queue: q}, err
}

func (i *Inbox) itemBesideQueue(r *http.Request, who *person) (*panes, error) {
	it, err := i.itemPage(r, who)
	if err != nil {
		return nil, err
	}
	q, err := i.queue(r, who, r.PathValue("id"))
	return &panes{q, it}, err
}

// queueBeside is the queue beside the item that the browser shows.
func (i *Inbox) queueBeside(r *http.Request, who *person) (*queue, error) {
	return i.queue(r, who, r.URL.Query().Get("at"))
}

// queue is a page of the list; open is the item beside it.
func (i *Inbox) queue(r *http.Request, who *person, open string) (*queue, error) {
	values := r.URL.Query()
	q := asked(values)
	q.DecidedBy = inFull(q.DecidedBy, who.Agent)
	list, err := ask(r.Context(), i, who.Agent, api.EscalationList, q.ListEscalations)
	if err != nil {
		return nil, err
	}
	now := stamp(list.Now)
	if now.IsZero() {
		now = i.Now()
	}
	view := &queue{
		Counts: list.Counts, Open: open, Shown: len(list.Escalations), Now: now, Asked: q,
		Query: filter(q), Plain: filter(q, func(a *filters) { a.Search = "" }),
	}
	view.Tabs = tabs(q, list.Counts)
	view.Ended = asEnded(q, list.Escalations)
	for n := range list.Escalations {
		line := i.row(&list.Escalations[n], who.Agent)
		line.Link = link("items/"+line.ID, view.Query)
		line.Current = line.ID == open
		view.Rows = append(view.Rows, line)
	}
	if list.Next != "" {
		values.Del("at") // of a part of a page
		// A page also ends where it has too many bytes; a higher limit shows no more then.
		if values.Set("limit", strconv.Itoa(min(api.MaxPage, q.Limit+4*queuePageSize))); q.Limit == api.MaxPage || view.Shown < q.Limit {
			values.Del("limit")
			values.Set("cursor", list.Next)
			view.Turns = true
		}
		view.More = link("", values.Encode())
	}
	return view, nil
}

// tabs returns the filter links above the list, with counts.
func tabs(q filters, counts api.EscalationCounts) []tab {
	var all []tab
	add := func(group, name, query string, count int, counted, chosen bool) {
		all = append(all, tab{group, name, link("", query), count, counted, chosen})
	}
	status := q.Status
	if status == "" {
		status = "open"
	}
	sort := cmp.Or(q.Sort, api.SortDue)
	which := func(s, claimed string) choice {
		return func(a *filters) { a.Status, a.Claimed = s, claimed }
	}
	add("Which", "Open", filter(q, which("open", q.Claimed)), counts.Open, true, status == "open")
	add("Which", "Decided", filter(q, which("resolved", "")), 0, false, status == "resolved")
	add("Which", "All", filter(q, which("all", "")), 0, false, status == "all")
	toggle := func(group, name, value, now string, count int, set func(*filters, string)) {
		next := value
		if now == value {
			next = ""
		}
		if group == "Whose" || count > 0 || now == value {
			add(group, name, filter(q, func(a *filters) { set(a, next) }), count, true, now == value)
		}
	}
	if status == "open" {
		whose := func(a *filters, claimed string) { a.Claimed = claimed }
		toggle("Whose", "mine", api.ClaimedByMe, q.Claimed, counts.Mine, whose)
		toggle("Whose", "unclaimed", api.ClaimedByNobody, q.Claimed, counts.Unclaimed, whose)
		for _, u := range []string{"critical", "high", "medium", "low"} {
			toggle("Urgency", u, u, q.Urgency, counts.Urgency[u], func(a *filters, urgency string) { a.Urgency = urgency })
		}
	}
	for _, by := range []string{api.SortDue, api.SortNewest, api.SortAmount} {
		name := by
		if by == api.SortDue && status == "resolved" {
			name = "decided"
		}
		add("Sort by", name, filter(q, func(a *filters) { a.Sort = by }), 0, false, sort == by)
	}
	return all
}

func (i *Inbox) row(item *api.EscalationItem, me performatives.Agent) row {
	r := row{
		ID: string(item.ID), Title: titleOf(item), Reason: render.Reason(item.Reason), Urgency: item.Urgency, Status: item.Status,
		Asks: i.called(item.By), Org: string(item.Organisation),
		Due: stamp(item.AnswerDue()), At: stamp(item.At), Open: item.Status == "open",
	}
	if item.Dispute != "" { // another organisation may have filed it
		r.Org = organisation(item.By)
	}
	for n, other := range others(item) {
		if n > 0 {
			r.With += ", "
		}
		r.With += i.called(other) + " · " + organisation(other)
	}
	if item.Amount != nil {
		r.Amount = render.Money(item.Amount.Value, item.Amount.Currency)
	}
	if r.Open {
		r.Mark, r.Pick = markOf(item, me), item.You == nil || !item.You.Reads
	}
	switch {
	case !r.Open:
		if r.At = stamp(item.DecidedAt); item.DecidedBy.IsHuman() {
			r.Held = i.called(item.DecidedBy)
		}
		if g := inForce(item); g != nil && (item.Status == performatives.Approved || item.Status == performatives.Modified) {
			r.Mark = g.String()
		}
	case item.Case.Claim != nil:
		r.Held, r.Mine = i.called(item.Case.Claim.By), item.Case.Claim.By == me
	case item.Case.Assignee != "":
		r.Held, r.Mine = "→ "+i.called(item.Case.Assignee), item.Case.Assignee == me
	}
	if r.Mine {
		r.Held = "you"
	}
	return r
}

// markOf says in a few words what a reader may do with an item.
func markOf(item *api.EscalationItem, me performatives.Agent) string {
	you := item.You
	if you == nil || you.Reads {
		return ""
	}
	t := tallyOf(item)
	switch {
	case you.Voted:
		return "you approved"
	case !you.Decide:
		return "not for you now"
	case item.By == me:
		return "you asked"
	case len(you.Limits) > 0 && item.Amount == nil && (item.Route == nil || item.Route.NonMonetary == ""):
		return "no amount found"
	case item.Amount != nil && !within(you.Limits, item.Amount):
		return "above your ceiling"
	case t.Wanted > 1:
		return strconv.Itoa(t.Approved) + " of " + strconv.Itoa(t.Wanted)
	}
	return "you can decide"
}

func within(limits []performatives.Limit, a *escalation.Amount) bool {
	return escalation.Within(limits, &performatives.RulingsAuthority{MaxAmount: &a.Value, Currency: a.Currency})
}

// titleOf returns the proposal's subject, which the counterparty may have written.
func titleOf(item *api.EscalationItem) string {
	if item.Proposal != nil && item.Proposal.Subject != "" {
		return oneLine(item.Proposal.Subject)
	}
	if item.Purpose != "" {
		return oneLine(item.Purpose)
	}
	return render.Reason(item.Reason)
}
