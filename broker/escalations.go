package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// inside tells whether an item is the caller's own organisation's affair: then
// it also sees who is asked, and what colleagues do and say. Agents, and the
// other side, see what is at stake and how it ended.
func (b *Broker) inside(c api.Caller, org performatives.Organisation) bool {
	if c.Operator {
		return true
	}
	member, ok := b.registry.Member(c.Agent)
	return ok && (escalation.MayDecide(member, org) || c.Agent.Organisation() == org && b.registry.Audits(c))
}

// seenBy is an item as a caller sees it now; false for one that it may not see.
func (b *Broker) seenBy(ctx context.Context, c api.Caller, k *kept) (api.EscalationItem, bool) {
	item := *k.EscalationItem
	if b.inside(c, item.Organisation) {
		asOf(&item, b.Now())
		if !c.Operator {
			item.You = b.you(c, &item)
		}
		return item, true
	}
	item.Due, item.Route, item.Desk, item.Revision, item.Shown = "", nil, api.Desk{}, 0, ""
	if !b.list.Names(ctx, item.Session, c.Agent) && !b.registry.Audits(c) {
		return item, false // without reading the sessions of strangers
	}
	return item, b.seen(ctx, c, item.Session, func(*live) error { return nil }) == nil
}

// you is what the caller may do with an item.
func (b *Broker) you(c api.Caller, item *api.EscalationItem) *api.You {
	member, _ := b.registry.Member(c.Agent)
	you := &api.You{Limits: member.Limits}
	you.Voted = slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == c.Agent })
	level, named := turnOf(item, c.Agent)
	desk := escalation.Desk{Claim: item.Desk.Claim}
	switch {
	case item.Status != statusOpen:
		you.Why = "it is over: " + item.Status
	case !escalation.MayDecide(member, item.Organisation):
		you.Why = "you may look, and not decide"
	case slices.Contains(item.Theirs, c.Agent):
		you.Why = "you are the other side in this session"
	case !named:
		you.Why = "the rules ask others"
	case level > item.Route.Level:
		you.Why = "your turn comes when those before you have not answered, at " + item.Route.Levels[level-1].Due
	case desk.HeldByAnother(c.Agent, b.Now()) != nil:
		you.Why = string(item.Desk.Claim.By) + " has claimed it"
	default:
		you.Decide = true
		switch {
		case item.By == c.Agent:
			you.Why = "you asked this yourself: you may deny it, and somebody else approves it"
		case you.Voted:
			you.Why = "you have approved it; you may still deny it"
		case member.Limited && item.Amount == nil:
			you.Why = "which amount is at stake cannot be seen: approve with a bound within your ceiling"
		case item.Amount != nil && !escalation.Within(member.Limits, &performatives.RulingsAuthority{MaxAmount: &item.Amount.Value, Currency: item.Amount.Currency}):
			you.Why = "what is at stake is above your ceiling: approve less, or leave it to who can"
		}
	}
	return you
}

// turnOf is the first level of an item's route that asks a human.
func turnOf(item *api.EscalationItem, a performatives.Agent) (int, bool) {
	n := slices.IndexFunc(item.Route.Levels, func(l api.Level) bool { return len(l.Approvers) == 0 || slices.Contains(l.Approvers, a) })
	return n, n >= 0
}

// escalationList is for humans who may decide; agents see those of their sessions.
func (b *Broker) escalationList(ctx context.Context, c api.Caller, q api.ListEscalations) (api.Escalations, error) {
	found := api.Escalations{Escalations: []api.EscalationItem{}}
	switch q.Status {
	case "", statusOpen, "resolved", "all":
	default:
		return found, session.Refuse(session.MalformedEnvelope, "status is open, resolved or all")
	}
	switch q.Claimed {
	case "", api.ClaimedByMe, api.ClaimedByNobody, api.ClaimedByOthers:
	default:
		return found, session.Refuse(session.MalformedEnvelope, "claimed is me, nobody or others")
	}
	if len(q.Search) > maxSearch {
		return found, session.Refuse(session.TooLarge, "a search has at most %d bytes", maxSearch)
	}
	org := q.Organisation
	if !c.Operator && q.Session == "" && b.inside(c, c.Agent.Organisation()) && !b.registry.Audits(c) {
		org = c.Agent.Organisation() // whose queue it is
	}
	open, closed := b.items.of(org)
	if len(open)+len(closed) > 0 && b.inside(c, c.Agent.Organisation()) {
		found.Counts, found.Now = b.counts(c, open), stamp(b.Now())
	}
	var list []*kept
	if q.Status != "resolved" {
		list = after(open, q.Cursor, "o")
	}
	if q.Status == "resolved" || q.Status == "all" {
		slices.Reverse(closed)
		list = append(list, after(closed, q.Cursor, "r")...)
	}
	size, words := 0, searched(q.Search)
	for n, k := range list {
		if !b.wanted(c, k, q, words) {
			continue
		}
		item, visible := b.seenBy(ctx, c, k)
		if !visible {
			continue
		}
		if size += weight(&item); len(found.Escalations) == page(q.Limit) || size > maxPageBytes && len(found.Escalations) > 0 {
			last := list[n-1]
			found.Next = "r" + last.key
			if last.Status == statusOpen {
				found.Next = "o" + last.key
			}
			break
		}
		found.Escalations = append(found.Escalations, item)
	}
	return found, nil
}

// after are the items of a list behind the one that a cursor names. Open items
// come first, in the order of their keys; the others in the reverse.
func after(list []*kept, cursor, of string) []*kept {
	switch {
	case cursor == "", of == "r" && strings.HasPrefix(cursor, "o"):
		return list
	case !strings.HasPrefix(cursor, of):
		return nil
	}
	key := cursor[1:]
	n := slices.IndexFunc(list, func(k *kept) bool { return of == "o" && k.key > key || of == "r" && k.key < key })
	if n < 0 {
		return nil
	}
	return list[n:]
}

func (b *Broker) wanted(c api.Caller, k *kept, q api.ListEscalations, words []string) bool {
	if q.Urgency != "" && k.Urgency != q.Urgency || q.Session != "" && k.Session != q.Session || !k.matches(words) {
		return false
	}
	if q.Claimed == "" {
		return true
	}
	if !b.inside(c, k.Organisation) || k.Route == nil {
		return false
	}
	held := (escalation.Desk{Claim: k.Desk.Claim}).Held(b.Now())
	switch q.Claimed {
	case api.ClaimedByMe:
		return held != nil && held.By == c.Agent || held == nil && k.Desk.Assignee == c.Agent && c.Agent != ""
	case api.ClaimedByOthers:
		return held != nil && held.By != c.Agent
	}
	return held == nil
}

// soon is when an item counts as due soon.
const soon = 15 * time.Minute

// counts are of the open items of the caller's own organisation.
func (b *Broker) counts(c api.Caller, open []*kept) api.EscalationCounts {
	n := api.EscalationCounts{Urgency: map[string]int{}}
	now := b.Now()
	before := stamp(now.Add(soon))
	inside := map[performatives.Organisation]bool{}
	for _, k := range open {
		own, asked := inside[k.Organisation]
		if !asked {
			own = b.inside(c, k.Organisation)
			inside[k.Organisation] = own
		}
		if !own || k.Route == nil {
			continue
		}
		n.Open++
		n.Urgency[k.Urgency]++
		if k.Due <= before {
			n.DueSoon++
		}
		held := (escalation.Desk{Claim: k.Desk.Claim}).Held(now)
		if held == nil {
			n.Unclaimed++
		}
		if held != nil && held.By == c.Agent || held == nil && k.Desk.Assignee == c.Agent && c.Agent != "" {
			n.Mine++
		}
	}
	return n
}

// visible is an item by its id that the caller may see.
func (b *Broker) visible(ctx context.Context, c api.Caller, id string) (api.EscalationItem, error) {
	k, ok := b.items.find(escalation.ID(id))
	if !ok && b.inside(c, c.Agent.Organisation()) { // nobody else has it looked for
		var err error
		if k, err = b.items.past(ctx, c, id); err != nil {
			return api.EscalationItem{}, err
		}
		ok = true
	}
	if ok {
		if item, visible := b.seenBy(ctx, c, k); visible {
			return item, nil
		}
	}
	return api.EscalationItem{}, unknownEscalation()
}

func (b *Broker) escalationGet(ctx context.Context, c api.Caller, q api.EscalationRef) (api.EscalationItem, error) {
	item, err := b.visible(ctx, c, q.Escalation)
	if err != nil {
		return item, err
	}
	if b.inside(c, item.Organisation) {
		if item, err = b.upToDate(ctx, c, item); err != nil {
			return item, err
		}
		b.viewed(ctx, c, &item)
		if err := b.detail(ctx, &item); err != nil {
			return item, err
		}
	}
	b.compare(&item)
	messages, err := b.sessionMessages(ctx, api.Caller{Operator: true}, api.ListMessages{Session: item.Session, Limit: api.MaxPage})
	withStory(&item, messages)
	return item, err
}

// weight is about how many bytes an item has without its transcript.
func weight(item *api.EscalationItem) int {
	n := 2048 + len(item.Context) + len(item.TermsSchema)
	for _, offer := range []*api.OfferView{item.Proposal, item.Previous} {
		if offer != nil {
			n += len(offer.Terms) + len(offer.Subject)
		}
	}
	for _, c := range item.Changes {
		n += 64 + len(c.Path) + len(c.Before) + len(c.After)
	}
	for _, e := range item.Comments {
		n += 128 + len(e.Text)
	}
	return n
}

// withStory adds as much of the transcript as one message holds, from its
// beginning; the rest is read from the session.
func withStory(item *api.EscalationItem, story api.Messages) {
	left := maxItemBytes - weight(item)
	item.Next = story.Next
	for n, m := range story.Messages {
		if left -= len(m); left < 0 {
			next := uint64(n)
			story.Messages, item.Next = story.Messages[:n], &next
			break
		}
	}
	item.Transcript = story.Messages
}

// maxItemBytes keeps an item below the server's largest message, 1 MiB.
const maxItemBytes = 900 << 10
