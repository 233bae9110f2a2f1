package reads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/session"
)

// DisputeList answers dispute.list from the rows of the session list, the newest session first. Like ObligationList
// it reads a session only to find out whether somebody may read it.
func (x *Reads) DisputeList(ctx context.Context, c api.Caller, q api.ListDisputes) (api.Disputes, error) {
	if q.Status != "" && q.Status != session.DisputeOpen && q.Status != api.AllDisputes {
		return api.Disputes{}, session.Refuse(session.MalformedEnvelope, "status is open or all, not %.40q", q.Status).With(map[string]string{"path": "/status"})
	}
	after, before, err := disputeCursor(q.Cursor)
	if err != nil {
		return api.Disputes{}, err
	}
	of := x.o.List.Dues(x.selection(c))
	slices.SortFunc(of, func(a, b sessionlist.DueRow) int { return b.Compare(a.Place) })
	page := api.NewPage[api.DisputeRow](min(cmp.Or(max(q.Limit, 0), api.DefaultObligations), api.MaxObligations))
	looked, last := 0, q.Cursor
	for n := range of {
		at := of[n].Place
		rows := slices.DeleteFunc(slices.Clone(of[n].Disputes), func(row api.DisputeRow) bool {
			return after != sessionlist.Place{} && (at.Compare(after) > 0 || at == after && row.Sequence >= before) || row.Status != session.DisputeOpen && q.Status != api.AllDisputes
		})
		if len(rows) == 0 {
			continue
		}
		if looked == mostLooked {
			return api.Disputes{Disputes: page.Items, Next: last}, nil
		}
		may, read, err := x.mayReadRow(ctx, c, &of[n])
		if err != nil {
			return api.Disputes{}, err
		}
		if read {
			looked++
		}
		for _, row := range rows {
			if may && !page.Add(row, fit.Size(row)) {
				return api.Disputes{Disputes: page.Items, Next: last}, nil
			}
			last = fmt.Sprintf("%s %d", at.Cursor(), row.Sequence)
		}
	}
	return api.Disputes{Disputes: page.Items}, nil
}

// disputeCursor is the place of the session and the entry of the dispute after which a page begins.
func disputeCursor(cursor string) (after sessionlist.Place, before uint64, err error) {
	if cursor == "" {
		return after, 0, nil
	}
	at, entry, _ := strings.Cut(cursor, " ")
	if after, err = sessionlist.ParseCursor(at); err != nil {
		return after, 0, err
	}
	if before, err = strconv.ParseUint(entry, 10, 64); err != nil || at == "" {
		return after, 0, sessionlist.NoCursor()
	}
	return after, before, nil
}
