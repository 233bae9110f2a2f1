package approvals

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// How long a claim lasts.
const (
	defaultLease = 10 * time.Minute
	longestLease = 8 * time.Hour
)

// maxComment bounds a comment, in bytes.
const maxComment = 8 << 10

// act appends an action of the caller to the case log of an open approval, if judge allows it, and
// answers with the approval as it is then. Operators may act on any; their actions have no author.
func (a *Approvals) act(ctx context.Context, c api.Caller, id string, judge func(api.EscalationItem, escalation.Case, time.Time) (escalation.Action, error)) (api.EscalationItem, error) {
	item, err := a.find(ctx, c, id)
	if err != nil {
		return item, err
	}
	if member, _ := a.o.Registry.Member(c.Agent); !c.Operator && !escalation.MayDecide(member, item.Organisation) {
		return item, session.Refuse(session.Unauthorized, "only the humans of %s who may decide can do this", item.Organisation)
	}
	if item.Status != statusOpen {
		return item, isOver(&item)
	}
	if item, err = a.current(ctx, c, item); err != nil {
		return item, err
	}
	if item.Route == nil {
		return item, session.Busy()
	}
	if err := a.cases.append(ctx, item.Organisation, item.ID, func(now escalation.Case) (escalation.Action, error) {
		at := a.o.Now()
		if now.Ended != "" {
			return escalation.Action{}, isOver(&item)
		}
		e, err := judge(item, now, at)
		e.At, e.By = at.UTC(), c.Agent
		return e, err
	}); err != nil {
		return item, err
	}
	if err := a.o.Reconcile(ctx, item.Session); err != nil {
		return item, err
	}
	if item, err = a.find(ctx, c, id); err != nil {
		return item, err
	}
	return item, a.detail(ctx, &item)
}

func isOver(item *api.EscalationItem) error {
	return session.Refuse(session.EscalationResolved, "the escalation is over: %s by %s", item.Status, item.DecidedBy).
		With(map[string]any{"escalationId": item.ID, "decision": item.Status, "by": item.DecidedBy, "at": item.DecidedAt})
}

// current is the approval with a case log that is up to date: it may have been asked for a moment
// after it was opened.
func (a *Approvals) current(ctx context.Context, c api.Caller, item api.EscalationItem) (api.EscalationItem, error) {
	if now := a.cases.cached(item.ID); now.Opened && now.Actions == item.Case.Actions {
		return item, nil
	}
	if err := a.o.Reconcile(ctx, item.Session); err != nil {
		return item, err
	}
	return a.find(ctx, c, string(item.ID))
}

// Claim answers escalation.claim.
func (a *Approvals) Claim(ctx context.Context, c api.Caller, q api.ClaimEscalation) (api.EscalationItem, error) {
	lease := time.Duration(q.Lease) * time.Millisecond
	switch {
	case q.Lease == 0:
		lease = defaultLease
	case q.Lease < 0, q.Lease > longestLease.Milliseconds():
		return api.EscalationItem{}, session.Refuse(session.MalformedEnvelope, "/leaseMs: a claim lasts between 1 ms and %d ms, which is 8 hours", longestLease.Milliseconds()).
			With(map[string]string{"path": "/leaseMs"})
	}
	return a.act(ctx, c, q.Escalation, func(item api.EscalationItem, now escalation.Case, at time.Time) (escalation.Action, error) {
		e := escalation.Action{Kind: escalation.Claimed, Until: at.Add(lease).UTC()}
		if c.Operator {
			return e, session.Refuse(session.Unauthorized, "an operator decides nothing, so it cannot claim an escalation")
		}
		level, asked := levelAsking(&item, c.Agent)
		switch {
		case !asked, level > item.Route.Level:
			return e, session.Refuse(session.Unauthorized, "only those who are asked now can claim this: %s", namesOf(item.Route.Levels[item.Route.Level].Approvers))
		case slices.Contains(item.Counterparties, c.Agent):
			return e, session.Refuse(session.Unauthorized, "you take part for the other side in this session, so you cannot decide for this one")
		case slices.Contains(item.Delegates, c.Agent):
			return e, session.Refuse(session.Unauthorized, "you hold a delegation in this session, and may not decide while it lasts")
		}
		if held := now.HeldByAnother(c.Agent, at); held != nil && q.TakeOver {
			e.To, e.Text = held.By, "taken over"
			return e, nil
		}
		return e, a.checkUnclaimed(&item, now, c, at)
	})
}

// locks reports whether a claim keeps colleagues from deciding: its holder can decide.
func (a *Approvals) locks(item *api.EscalationItem, held *escalation.Claim) bool {
	member, known := a.o.Registry.Member(held.By)
	level, asked := levelAsking(item, held.By)
	return known && escalation.MayDecide(member, item.Organisation) && asked && level <= item.Route.Level && held.By != item.By
}

// checkUnclaimed refuses if a colleague who can decide has claimed the approval.
func (a *Approvals) checkUnclaimed(item *api.EscalationItem, now escalation.Case, c api.Caller, at time.Time) error {
	held := now.HeldByAnother(c.Agent, at)
	if held == nil || c.Operator || !a.locks(item, held) {
		return nil
	}
	return session.Refuse(session.WrongTurn, "%s has claimed it until %s", held.By, api.Timestamp(held.Until)).With(map[string]any{"claim": held})
}

// Release answers escalation.release.
func (a *Approvals) Release(ctx context.Context, c api.Caller, q api.EscalationRef) (api.EscalationItem, error) {
	return a.act(ctx, c, q.Escalation, func(item api.EscalationItem, now escalation.Case, at time.Time) (escalation.Action, error) {
		if now.Held(at) == nil {
			return escalation.Action{}, session.Refuse(session.WrongTurn, "nobody has claimed it")
		}
		return escalation.Action{Kind: escalation.Released}, a.checkUnclaimed(&item, now, c, at)
	})
}

// Assign answers escalation.assign.
func (a *Approvals) Assign(ctx context.Context, c api.Caller, q api.AssignEscalation) (api.EscalationItem, error) {
	return a.act(ctx, c, q.Escalation, func(item api.EscalationItem, now escalation.Case, at time.Time) (escalation.Action, error) {
		e := escalation.Action{Kind: escalation.Assigned, To: q.To}
		if q.To != "" {
			if _, err := a.colleague(item, q.To); err != nil {
				return e, err
			}
			a.replaceAbsent(&item, &e, at)
		}
		return e, nil
	})
}

// colleague is the level of the route that asks somebody, who must be on it.
func (a *Approvals) colleague(item api.EscalationItem, to performatives.Agent) (level int, err error) {
	member, known := a.o.Registry.Member(to)
	level, asked := levelAsking(&item, to)
	if known && asked && escalation.MayDecide(member, item.Organisation) {
		return level, nil
	}
	names := []string{}
	for _, approver := range a.approvers(&item) {
		names = append(names, string(approver.Agent))
	}
	if len(names) == 0 {
		return 0, session.Refuse(session.Unauthorized, "%.300s cannot decide this, and nobody else can", to)
	}
	return 0, session.Refuse(session.Unauthorized, "%.300s cannot decide this; these can: %s", to, strings.Join(names, ", "))
}

// Comment answers escalation.comment.
func (a *Approvals) Comment(ctx context.Context, c api.Caller, q api.CommentEscalation) (api.EscalationItem, error) {
	return a.act(ctx, c, q.Escalation, func(api.EscalationItem, escalation.Case, time.Time) (escalation.Action, error) {
		switch text := strings.TrimSpace(q.Text); {
		case text == "":
			return escalation.Action{}, session.Refuse(session.MalformedEnvelope, "/text: is empty").With(map[string]string{"path": "/text"})
		case len(text) > maxComment:
			return escalation.Action{}, session.Refuse(session.TooLarge, "a comment has at most %d bytes", maxComment)
		default:
			return escalation.Action{Kind: escalation.Commented, Text: text}, nil
		}
	})
}

// Transfer answers escalation.transfer: to a colleague, or to a later level, which is then asked
// before its time. Only who has been asked may transfer.
func (a *Approvals) Transfer(ctx context.Context, c api.Caller, q api.TransferEscalation) (api.EscalationItem, error) {
	return a.act(ctx, c, q.Escalation, func(item api.EscalationItem, now escalation.Case, at time.Time) (escalation.Action, error) {
		e := escalation.Action{Kind: escalation.Transferred, To: q.To, Text: clip(strings.TrimSpace(q.Reason), maxComment)}
		if level, asked := levelAsking(&item, c.Agent); !c.Operator && (!asked || level > item.Route.Level) {
			return e, session.Refuse(session.AuthorityExceeded, "only those who have been asked can transfer this: %s", namesOf(item.Route.Levels[item.Route.Level].Approvers))
		}
		var err error
		switch {
		case (q.To == "") == (q.Level == ""):
			return e, session.Refuse(session.MalformedEnvelope, "transfer to a colleague or to a level: one of to and level")
		case q.To != "":
			e.Level, err = a.colleague(item, q.To)
		default:
			e.Level, err = levelNamed(item, q.Level)
		}
		if err != nil {
			return e, err
		}
		if q.Level != "" && e.Level <= item.Route.Level {
			return e, session.Refuse(session.WrongState, "%s has been asked already", levelName(item.Route.Levels[e.Level], e.Level))
		}
		a.replaceAbsent(&item, &e, at)
		return e, a.checkUnclaimed(&item, now, c, at)
	})
}

// levelNamed finds a level by its name, or by its number from 1.
func levelNamed(item api.EscalationItem, name string) (int, error) {
	var names []string
	for n, l := range item.Route.Levels {
		if l.Name == name || strconv.Itoa(n+1) == name {
			return n, nil
		}
		names = append(names, levelName(l, n))
	}
	return 0, session.Refuse(session.MalformedEnvelope, "there is no level %.80q; there is %s", name, strings.Join(names, ", "))
}

// History answers escalation.history, a page of the case log, for those who see it.
func (a *Approvals) History(ctx context.Context, c api.Caller, q api.ReadCaseLog) (api.CaseLog, error) {
	found := api.CaseLog{Escalation: q.Escalation}
	item, err := a.find(ctx, c, q.Escalation)
	if err != nil {
		return found, err
	}
	if !a.isInsider(c, item.Organisation) {
		return found, unknownEscalation()
	}
	// Whoever has the answer to a decision finds it in the history, though that follows the answer.
	if err := a.o.Reconcile(ctx, item.Session); err != nil {
		return found, err
	}
	found.Actions, found.Next, err = a.cases.history(ctx, item.Organisation, item.ID, q.Cursor)
	return found, err
}
