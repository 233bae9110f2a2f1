package approvals

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// List answers escalation.list: humans who may decide see their organisation's approvals, agents
// those of their sessions.
func (a *Approvals) List(ctx context.Context, c api.Caller, q api.ListEscalations) (api.Escalations, error) {
	var found api.Escalations
	if err := checkList(&q); err != nil {
		return found, err
	}
	insider := a.isInsider(c, c.Agent.Organisation())
	org := q.Organisation
	if !c.Operator && q.Session == "" && insider && !a.o.Registry.Audits(c) {
		org = c.Agent.Organisation()
	}
	all := a.queue.of(org)
	if len(all.open)+len(all.closed) > 0 && insider {
		found.Counts, found.Now = a.counts(c, all.open), api.Timestamp(a.o.Now())
	}
	words, items := searchWords(q.Search), api.NewPage[api.EscalationItem](q.Limit)
	list := behind(all, &q)
	for n, k := range list {
		if !a.matches(c, k, &q, words) {
			continue
		}
		item, visible := a.seenBy(ctx, c, k)
		if !visible {
			continue
		}
		if !items.Add(item, k.size) {
			found.Next = cursorAt(list[n-1], q.Sort)
			break
		}
	}
	found.Escalations = items.Items
	return found, nil
}

func checkList(q *api.ListEscalations) error {
	switch q.Status {
	case "", statusOpen, "resolved", "all":
	default:
		return session.Refuse(session.MalformedEnvelope, "status is open, resolved or all")
	}
	if q.Urgency != "" && !slices.Contains(urgencies, escalation.Urgency(q.Urgency)) {
		return session.Refuse(session.MalformedEnvelope, "urgency is low, medium, high or critical")
	}
	switch q.Claimed {
	case "", api.ClaimedByMe, api.ClaimedByNobody, api.ClaimedByOthers:
	default:
		return session.Refuse(session.MalformedEnvelope, "claimed is me, nobody or others")
	}
	if !slices.Contains([]string{"", api.SortDue, api.SortNewest, api.SortAmount}, q.Sort) {
		return malformed("/sort", "sort is due, newest or amount")
	}
	if _, err := performatives.ParseSessionID(string(q.Session)); q.Session != "" && err != nil {
		return malformed("/sessionId", "a session id is a UUIDv7")
	}
	if q.Cursor != "" && !strings.HasPrefix(q.Cursor, openCursor) && !strings.HasPrefix(q.Cursor, resolvedCursor) {
		return malformed("/cursor", "cursor is next of the page before")
	}
	if len(q.Search) > maxSearch {
		return session.Refuse(session.TooLarge, "a search has at most %d bytes", maxSearch)
	}
	return checkEnded(q)
}

var outcomes = []string{
	performatives.Approved, performatives.Modified, performatives.Denied, performatives.Guidance, escalation.EndExpired, escalation.EndClosed,
}

// checkEnded checks the filters of approvals that have ended, and writes their times as approvals do.
func checkEnded(q *api.ListEscalations) error {
	if q.Outcome != "" && !slices.Contains(outcomes, q.Outcome) {
		return session.Refuse(session.MalformedEnvelope, "outcome is %s", strings.Join(outcomes, ", ")).With(map[string]string{"path": "/outcome"})
	}
	if _, err := performatives.ParseAgent(string(q.DecidedBy)); q.DecidedBy != "" && err != nil {
		return malformed("/decidedBy", err.Error())
	}
	for path, at := range map[string]*string{"/decidedFrom": &q.DecidedFrom, "/decidedUntil": &q.DecidedUntil} {
		if *at == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, *at)
		if err != nil {
			return session.Refuse(session.MalformedEnvelope, "%s: %.40q is not a time such as 2026-03-02T15:04:05Z", path, *at).With(map[string]string{"path": path})
		}
		*at = api.Timestamp(t)
	}
	return nil
}

// A cursor is one of these and the key of the last approval of the page before.
const (
	openCursor     = "o"
	resolvedCursor = "r"
)

func cursorAt(k *approval, sort string) string {
	if k.Status == statusOpen {
		return openCursor + orderOf(sort, true).key(k)
	}
	return resolvedCursor + orderOf(sort, false).key(k)
}

// behind is what is behind a cursor: open approvals come first, then those that have ended.
func behind(all lists, q *api.ListEscalations) (list []*approval) {
	at, key := "", ""
	if q.Cursor != "" {
		at, key = q.Cursor[:1], q.Cursor[1:]
	}
	for _, part := range []struct {
		cursor string
		list   []*approval
		wanted bool
	}{
		{openCursor, all.open, q.Status != "resolved" && at != resolvedCursor},
		{resolvedCursor, all.closed, q.Status == "resolved" || q.Status == "all"},
	} {
		if !part.wanted {
			continue
		}
		o := orderOf(q.Sort, part.cursor == openCursor)
		o.sort(part.list, q.Sort)
		if at == part.cursor {
			part.list = o.after(part.list, key)
		}
		list = append(list, part.list...)
	}
	return list
}

// Overdue is how many open approvals are late, of all organisations, and since when the oldest is.
func (a *Approvals) Overdue(now time.Time) (n int, since string) {
	open := a.queue.of("").open // the one due first at the top
	for ; n < len(open); n++ {
		due := open[n].AnswerDue()
		if at, err := time.Parse(time.RFC3339Nano, due); err != nil || !at.Before(now) {
			break
		}
		if n == 0 {
			since = due
		}
	}
	return n, since
}

// Waiting counts the open approvals of all organisations: those that are due later, those due within 15 minutes,
// and those that are overdue.
func (a *Approvals) Waiting(now time.Time) (later, due, overdue int) {
	a.queue.mu.RLock()
	defer a.queue.mu.RUnlock()
	open := a.queue.all.open
	before := func(at time.Time) int { // they are sorted by when they are due
		return sort.Search(len(open), func(i int) bool {
			due, err := time.Parse(time.RFC3339Nano, open[i].AnswerDue())
			return err != nil || !due.Before(at)
		})
	}
	overdue = before(now)
	due = before(now.Add(soon)) - overdue
	return len(open) - due - overdue, due, overdue
}

// matches reports whether a request asks for an approval.
func (a *Approvals) matches(c api.Caller, k *approval, q *api.ListEscalations, words []string) bool {
	if q.Urgency != "" && k.Urgency != q.Urgency || q.Session != "" && k.Session != q.Session || !k.contains(words, c.Opens) ||
		!endedAs(k, q) || !isWith(k, q.Counterparty) {
		return false
	}
	if q.Claimed == "" {
		return true
	}
	if !a.isInsider(c, k.Organisation) || k.Route == nil {
		return false
	}
	held := heldAt(k, a.o.Now())
	switch q.Claimed {
	case api.ClaimedByMe:
		return isMine(c, k, held)
	case api.ClaimedByOthers:
		return held != nil && held.By != c.Agent
	}
	return held == nil
}

// endedAs reports whether an approval has ended as a request wants.
func endedAs(k *approval, q *api.ListEscalations) bool {
	if q.Outcome == "" && q.DecidedBy == "" && q.DecidedFrom == "" && q.DecidedUntil == "" {
		return true
	}
	return k.Status != statusOpen && (q.Outcome == "" || k.Status == q.Outcome) && (q.DecidedBy == "" || decidedBy(k, q.DecidedBy)) &&
		k.DecidedAt >= q.DecidedFrom && (q.DecidedUntil == "" || k.DecidedAt < q.DecidedUntil)
}

func decidedBy(k *approval, human performatives.Agent) bool {
	return k.DecidedBy == human || slices.ContainsFunc(k.Votes, func(v api.VoteView) bool { return v.By == human })
}

// isWith reports whether somebody of an organisation is on the other side; "" is any.
func isWith(k *approval, org performatives.Organisation) bool {
	return org == "" || slices.ContainsFunc(k.Counterparties, func(a performatives.Agent) bool { return a.Organisation() == org })
}

// heldAt is the claim in force at a time.
func heldAt(k *approval, at time.Time) *escalation.Claim {
	return (escalation.Case{Claim: k.Case.Claim}).Held(at)
}

// isMine reports whether the caller has claimed an approval, or is assigned to one that nobody has claimed.
func isMine(c api.Caller, k *approval, held *escalation.Claim) bool {
	if held != nil {
		return held.By == c.Agent
	}
	return k.Case.Assignee == c.Agent && c.Agent != ""
}

// soon is when an approval counts as due soon.
const soon = 15 * time.Minute

// counts are of the open approvals of the caller's own organisation.
func (a *Approvals) counts(c api.Caller, open []*approval) api.EscalationCounts {
	n := api.EscalationCounts{Urgency: map[string]int{}}
	now := a.o.Now()
	before := api.Timestamp(now.Add(soon))
	insider := map[performatives.Organisation]bool{}
	for _, k := range open {
		own, known := insider[k.Organisation]
		if !known {
			own = a.isInsider(c, k.Organisation)
			insider[k.Organisation] = own
		}
		if !own || k.Route == nil {
			continue
		}
		n.Open++
		n.Urgency[k.Urgency]++
		if k.Due <= before {
			n.DueSoon++
		}
		held := heldAt(k, now)
		if held == nil {
			n.Unclaimed++
		}
		if isMine(c, k, held) {
			n.Mine++
		}
	}
	return n
}
