package reads

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An owing is an obligation in its place in the list.
type owing struct {
	key string // by which it is sorted: a cursor
	of  *sessionlist.DueRow
	n   int // in of
}

// mostOwing is how many obligations one request keeps, and half of what it has in memory. If the caller may read too few of them to fill
// its page, the page is short, and has a cursor.
const mostOwing = 1024

// noDate sorts what has no date after everything that has one.
const noDate = "~"

// ObligationList answers obligation.list from the rows of the session list. It reads a session only to find out
// whether a delegate may read it.
func (x *Reads) ObligationList(ctx context.Context, c api.Caller, q api.ListObligations) (api.Obligations, error) {
	if err := fitsObligations(&q, c); err != nil {
		return api.Obligations{}, err
	}
	limit := min(cmp.Or(max(q.Limit, 0), api.DefaultObligations), api.MaxObligations)
	now := x.o.Now()
	all, more := x.owed(c, &q, now)
	page, may, looked, last := api.NewPage[api.ObligationRow](limit), map[performatives.SessionID]bool{}, 0, q.Cursor
	for _, o := range all {
		id := o.of.Session()
		if _, known := may[id]; !known {
			if looked == mostLooked {
				return api.Obligations{Obligations: page.Items, Next: last}, nil
			}
			readable, read, err := x.mayReadRow(ctx, c, o.of)
			if err != nil {
				return api.Obligations{}, err
			}
			if may[id] = readable; read {
				looked++
			}
		}
		if row := rowOf(o.of, o.n, now); may[id] && !page.Add(row, fit.Size(row)) {
			return api.Obligations{Obligations: page.Items, Next: last}, nil
		}
		last = o.key
	}
	if !more {
		last = ""
	}
	return api.Obligations{Obligations: page.Items, Next: last}, nil
}

// fitsObligations refuses what cannot be asked for, and has times as rows have them.
func fitsObligations(q *api.ListObligations, c api.Caller) error {
	switch q.Status {
	case "", session.ObligationDue, session.ObligationPartial, session.ObligationAsserted, session.ObligationBreached, session.ObligationDisputed:
	default:
		return session.Refuse(session.MalformedEnvelope, "status is due, partial, asserted, breached or disputed, not %.40q", q.Status).With(map[string]string{"path": "/status"})
	}
	switch {
	case q.Awaiting != "" && q.Awaiting != api.AwaitingMe && q.Awaiting != api.AwaitingOthers:
		return session.Refuse(session.MalformedEnvelope, "awaiting is me or others, not %.40q", q.Awaiting).With(map[string]string{"path": "/awaiting"})
	case q.Awaiting != "" && c.Agent == "":
		return session.Refuse(session.MalformedEnvelope, "an operator has no obligations; leave awaiting out").With(map[string]string{"path": "/awaiting"})
	}
	for path, at := range map[string]*string{"/after": &q.After, "/before": &q.Before} {
		if *at == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, *at)
		if err != nil {
			return session.Refuse(session.MalformedEnvelope, "%.40q is not a time in RFC 3339, such as 2026-03-14T09:26:53Z", *at).With(map[string]string{"path": path})
		}
		*at = api.Timestamp(t)
	}
	return nil
}

// owed lists what is asked for, the first due first, and reports whether there is more.
func (x *Reads) owed(c api.Caller, q *api.ListObligations, now time.Time) (first []owing, more bool) {
	org, last := c.Agent.Organisation(), "" // no key after last is one of the first
	keep := func() {
		slices.SortFunc(first, func(a, b owing) int { return strings.Compare(a.key, b.key) })
		if len(first) > mostOwing {
			first, more = slices.Delete(first, mostOwing, len(first)), true
			last = first[mostOwing-1].key
		}
	}
	for _, of := range x.o.List.Dues(x.selection(c)) {
		for n := range of.Obligations {
			row := rowOf(&of, n, now)
			key := cmp.Or(row.Due, noDate) + " " + string(row.Session) + " " + row.Commitment + "/" + row.ID
			switch {
			case key <= q.Cursor, q.Status != "" && row.Status != q.Status,
				q.After != "" && (row.Due == "" || row.Due < q.After), q.Before != "" && (row.Due == "" || row.Due >= q.Before),
				q.Awaiting != "" && slices.ContainsFunc(row.For, func(a performatives.Agent) bool { return a.Organisation() == org }) != (q.Awaiting == api.AwaitingMe):
				continue
			case last != "" && key > last:
				more = true
				continue
			}
			if first = append(first, owing{key, &of, n}); len(first) == 2*mostOwing {
				keep()
			}
		}
	}
	keep()
	return first, more
}

// rowOf is an obligation of a session as it is now.
func rowOf(of *sessionlist.DueRow, n int, now time.Time) api.ObligationRow {
	return api.ObligationRowOf(of.Session(), of.Purpose, moved(of.Obligations[n], of.Stopped, now))
}

// moved is an obligation as it is now, of a row whose times stood still.
func moved(v api.ObligationView, s *sessionlist.Stopped, now time.Time) api.ObligationView {
	if s == nil {
		return v
	}
	by := max(0, min(now.Sub(s.Since), s.Until.Sub(s.Since)))
	v.Deadline = later(v.Deadline, by)
	if v.Delivery != nil {
		d := *v.Delivery
		d.Until, d.Paused = later(d.Until, by), v.Status == session.ObligationDisputed || now.Before(s.Until)
		v.Delivery = &d
	}
	return v
}

func later(stamp string, by time.Duration) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return api.Timestamp(at.Add(by))
}

// mayReadRow reports whether a caller may read a session, and whether the session was read to find out: the row
// of a delegate does not say for how long it is one.
func (x *Reads) mayReadRow(ctx context.Context, c api.Caller, row *sessionlist.DueRow) (may, read bool, err error) {
	org := c.Agent.Organisation()
	ours := func(a performatives.Agent) bool { return a.Organisation() == org }
	member, registered := x.o.Registry.Member(c.Agent)
	switch {
	case c.Operator, slices.Contains(row.Principals, c.Agent), c.Agent == row.Arbiter,
		x.o.Registry.ReadsAll(c) && slices.ContainsFunc(row.Principals, ours),
		registered && slices.Contains(row.Escalated, org) && escalation.MayDecide(member, org):
		return true, false, nil
	}
	err = x.Listed(ctx, c, row.Session(), func(s *Session) error {
		may = x.readable(c, s) == nil
		return nil
	})
	return may, true, err
}
