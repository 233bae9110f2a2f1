package broker

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

// maxComment bounds what colleagues write at once.
const maxComment = 8 << 10

// around judges what a human does around an open item, notes it, and answers
// with the item as it is then. Operators help out: by is "" for them.
func (b *Broker) around(ctx context.Context, c api.Caller, id string, judge func(api.EscalationItem, escalation.Desk, time.Time) (escalation.Event, error)) (api.EscalationItem, error) {
	item, err := b.visible(ctx, c, id)
	if err != nil {
		return item, err
	}
	if member, _ := b.registry.Member(c.Agent); !c.Operator && !escalation.MayDecide(member, item.Organisation) {
		return item, session.Refuse(session.Unauthorized, "this is for the humans of %s who may decide", item.Organisation)
	}
	if item.Status != statusOpen {
		return item, isOver(&item)
	}
	if item, err = b.upToDate(ctx, c, item); err != nil {
		return item, err
	}
	if item.Route == nil {
		return item, session.Busy()
	}
	if _, err := b.desks.change(ctx, item.Organisation, item.ID, func(d escalation.Desk) (escalation.Event, error) {
		now := b.Now()
		if d.Ended != "" {
			return escalation.Event{}, isOver(&item)
		}
		e, err := judge(item, d, now)
		e.At, e.By = now.UTC(), c.Agent
		return e, err
	}); err != nil {
		return item, err
	}
	if err := b.reshow(ctx, item.Session); err != nil {
		return item, err
	}
	if item, err = b.visible(ctx, c, id); err != nil {
		return item, err
	}
	b.compare(&item)
	return item, b.detail(ctx, &item)
}

func isOver(item *api.EscalationItem) error {
	return session.Refuse(session.EscalationResolved, "the escalation is over: %s by %s", item.Status, item.DecidedBy).
		With(map[string]any{"escalationId": item.ID, "decision": item.Status, "by": item.DecidedBy, "at": item.DecidedAt})
}

// upToDate is the item once what has happened to it is noted: it may have been
// asked for a moment after it was opened.
func (b *Broker) upToDate(ctx context.Context, c api.Caller, item api.EscalationItem) (api.EscalationItem, error) {
	if d := b.desks.of(item.ID); d.Opened && d.Events == item.Desk.Events {
		return item, nil
	}
	if err := b.reshow(ctx, item.Session); err != nil {
		return item, err
	}
	return b.visible(ctx, c, string(item.ID))
}

// reshow writes a session's items again.
func (b *Broker) reshow(ctx context.Context, id performatives.SessionID) error {
	var shown error
	err := b.look(ctx, id, func(l *live) {
		if open := l.state.Escalation(); open != nil {
			item := b.item(l, open)
			b.items.keep(&item)
		}
		shown = b.reconcileApprovals(b.work.Context(), l)
	})
	if err == nil {
		err = shown
	}
	return err
}

func (b *Broker) escalationClaim(ctx context.Context, c api.Caller, q api.ClaimEscalation) (api.EscalationItem, error) {
	lease := time.Duration(q.Lease) * time.Millisecond
	if lease <= 0 {
		lease = defaultLease
	}
	return b.around(ctx, c, q.Escalation, func(item api.EscalationItem, d escalation.Desk, now time.Time) (escalation.Event, error) {
		e := escalation.Event{Kind: escalation.Claimed, Until: now.Add(min(lease, longestLease)).UTC()}
		if c.Operator {
			return e, session.Refuse(session.Unauthorized, "who claims an item is at work on it: an operator decides nothing")
		}
		level, named := turnOf(&item, c.Agent)
		switch {
		case !named, level > item.Route.Level:
			return e, session.Refuse(session.Unauthorized, "others are asked now: %s", whom(item.Route.Levels[item.Route.Level].Approvers))
		case slices.Contains(item.Theirs, c.Agent):
			return e, session.Refuse(session.Unauthorized, "you are the other side in this session: you do not decide for both")
		}
		return e, free(d, c, now)
	})
}

// free refuses where a colleague holds the item.
func free(d escalation.Desk, c api.Caller, now time.Time) error {
	held := d.HeldByAnother(c.Agent, now)
	if held == nil || c.Operator {
		return nil
	}
	return session.Refuse(session.WrongTurn, "%s has claimed it until %s", held.By, stamp(held.Until)).With(map[string]any{"claim": held})
}

func (b *Broker) escalationRelease(ctx context.Context, c api.Caller, q api.EscalationRef) (api.EscalationItem, error) {
	return b.around(ctx, c, q.Escalation, func(_ api.EscalationItem, d escalation.Desk, now time.Time) (escalation.Event, error) {
		if d.Held(now) == nil {
			return escalation.Event{}, session.Refuse(session.WrongTurn, "nobody holds it")
		}
		return escalation.Event{Kind: escalation.Released}, free(d, c, now)
	})
}

func (b *Broker) escalationAssign(ctx context.Context, c api.Caller, q api.AssignEscalation) (api.EscalationItem, error) {
	return b.around(ctx, c, q.Escalation, func(item api.EscalationItem, _ escalation.Desk, _ time.Time) (escalation.Event, error) {
		if q.To != "" {
			if _, err := b.colleague(item, q.To); err != nil {
				return escalation.Event{}, err
			}
		}
		return escalation.Event{Kind: escalation.Assigned, To: q.To}, nil
	})
}

// colleague insists on somebody whom the route asks, at any level.
func (b *Broker) colleague(item api.EscalationItem, to performatives.Agent) (level int, err error) {
	member, known := b.registry.Member(to)
	level, named := turnOf(&item, to)
	if !known || !escalation.MayDecide(member, item.Organisation) || !named {
		return 0, session.Refuse(session.Unauthorized, "%.300s may not decide this; who may: %s", to, b.names(item))
	}
	return level, nil
}

func (b *Broker) names(item api.EscalationItem) string {
	var all []string
	for _, a := range b.approvers(&item) {
		all = append(all, string(a.Agent))
	}
	if len(all) == 0 {
		return "nobody"
	}
	return strings.Join(all, ", ")
}

func (b *Broker) escalationComment(ctx context.Context, c api.Caller, q api.CommentEscalation) (api.EscalationItem, error) {
	return b.around(ctx, c, q.Escalation, func(api.EscalationItem, escalation.Desk, time.Time) (escalation.Event, error) {
		switch text := strings.TrimSpace(q.Text); {
		case text == "":
			return escalation.Event{}, session.Refuse(session.MalformedEnvelope, "/text: is empty").With(map[string]string{"path": "/text"})
		case len(text) > maxComment:
			return escalation.Event{}, session.Refuse(session.TooLarge, "a comment has at most %d bytes", maxComment)
		default:
			return escalation.Event{Kind: escalation.Commented, Text: text}, nil
		}
	})
}

// escalationTransfer hands an item to a colleague, or up the chain, by who has
// been asked: a later level then decides before its time.
func (b *Broker) escalationTransfer(ctx context.Context, c api.Caller, q api.TransferEscalation) (api.EscalationItem, error) {
	return b.around(ctx, c, q.Escalation, func(item api.EscalationItem, d escalation.Desk, now time.Time) (escalation.Event, error) {
		e := escalation.Event{Kind: escalation.Transferred, To: q.To, Text: clip(strings.TrimSpace(q.Reason), maxComment)}
		if level, named := turnOf(&item, c.Agent); !c.Operator && (!named || level > item.Route.Level) {
			return e, session.Refuse(session.AuthorityExceeded, "who transfers an item has been asked for it: %s", whom(item.Route.Levels[item.Route.Level].Approvers))
		}
		var err error
		switch {
		case (q.To == "") == (q.Level == ""):
			return e, session.Refuse(session.MalformedEnvelope, "transfer to a colleague or to a level: one of to and level")
		case q.To != "":
			e.Level, err = b.colleague(item, q.To)
		default:
			e.Level, err = levelOf(item, q.Level)
		}
		if err != nil {
			return e, err
		}
		if q.Level != "" && e.Level <= item.Route.Level {
			return e, session.Refuse(session.WrongState, "%s has been asked already", levelName(item.Route.Levels[e.Level], e.Level))
		}
		return e, free(d, c, now)
	})
}

// levelOf finds a level by its name, or its number from 1.
func levelOf(item api.EscalationItem, name string) (int, error) {
	var names []string
	for n, l := range item.Route.Levels {
		if l.Name == name || strconv.Itoa(n+1) == name {
			return n, nil
		}
		names = append(names, levelName(l, n))
	}
	return 0, session.Refuse(session.MalformedEnvelope, "there is no level %.80q: there is %s", name, strings.Join(names, ", "))
}

func (b *Broker) escalationHistory(ctx context.Context, c api.Caller, q api.EscalationRef) (api.EscalationEvents, error) {
	found := api.EscalationEvents{Escalation: q.Escalation}
	item, err := b.visible(ctx, c, q.Escalation)
	if err != nil {
		return found, err
	}
	if !b.inside(c, item.Organisation) {
		return found, unknownEscalation()
	}
	found.Events, err = b.desks.history(ctx, item.Organisation, item.ID)
	return found, err
}

// longestWatch is how long a watch waits, at most.
const longestWatch = 25 * time.Second

// escalationWatch answers when an item that the caller may see has changed.
func (b *Broker) escalationWatch(ctx context.Context, c api.Caller, q api.WatchEscalations) (api.Watched, error) {
	answer := api.Watched{Changed: []api.EscalationItem{}}
	if q.Since == "" {
		_, now, _, _ := b.items.since(0)
		answer.Cursor = strconv.FormatUint(now, 10)
		return answer, nil
	}
	since, err := strconv.ParseUint(q.Since, 10, 64)
	if err != nil {
		return answer, session.Refuse(session.MalformedEnvelope, "since is a cursor of escalation.watch")
	}
	leave, err := b.items.watches(c)
	if err != nil {
		return answer, err
	}
	defer leave()
	wait := time.NewTimer(min(time.Duration(max(q.Wait, 0))*time.Millisecond, longestWatch))
	defer wait.Stop()
	size := 0
	for {
		items, now, forgotten, more := b.items.since(since)
		now = max(now, since)
		for _, k := range items {
			if item, visible := b.seenBy(ctx, c, k); visible {
				answer.Changed = append(answer.Changed, item)
				size += weight(&item)
			}
		}
		if size > maxPageBytes {
			answer.Changed, forgotten = []api.EscalationItem{}, true
		}
		answer.Cursor, answer.Reset = strconv.FormatUint(now, 10), forgotten
		if len(answer.Changed) > 0 || forgotten {
			return answer, nil
		}
		since = now
		select {
		case <-more:
		case <-wait.C:
			return answer, nil
		case <-b.leaving:
			return answer, nil
		case <-ctx.Done():
			return answer, nil
		}
	}
}
