package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// reconcileApprovals writes the escalations of a session as they stand, and around them
// what has come due. While the newest stands as it did, so do all.
func (b *Broker) reconcileApprovals(ctx context.Context, l *live) error {
	newest := l.state.NewestEscalation()
	if newest == nil {
		return nil
	}
	if err := b.tend(ctx, l, newest); err != nil {
		return err
	}
	as := fmt.Sprint(newest.ID, " ", newest.End.How, " ", len(newest.Votes), " ", b.desks.of(newest.ID).Events)
	if l.shown == as {
		return nil
	}
	var all []*escalation.Item
	l.state.Escalations(func(item *escalation.Item) { all = append(all, item) })
	slices.SortFunc(all, func(a, b *escalation.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, item := range all {
		if err := b.tend(ctx, l, item); err != nil {
			return err
		}
		if err := b.showItem(ctx, l, item); err != nil {
			return err
		}
	}
	l.shown = as
	return nil
}

// noteApproval makes memory agree with the session before an act is answered.
func (b *Broker) noteApproval(l *live) {
	item := b.item(l, l.state.NewestEscalation())
	b.items.keep(&item)
}

// showItem writes one item, unless its subject says so already.
func (b *Broker) showItem(ctx context.Context, l *live, of *escalation.Item) error {
	item := b.item(l, of)
	subject := api.Escalation(item.Organisation, item.Urgency, string(item.ID))
	last, err := b.store.Last(ctx, api.EscalationsStream, subject)
	if err != nil {
		return err
	}
	var position uint64
	if last != nil {
		position = last.Sequence
		var old api.EscalationItem
		if err := json.Unmarshal(last.Data, &old); err != nil {
			return err
		}
		if !newer(&old, &item) {
			b.items.keep(&old)
			return nil
		}
	}
	if item.Status == statusOpen {
		story, err := b.messages(ctx, l.places, api.ListMessages{Session: l.id, Limit: api.MaxPage})
		if err != nil {
			return err
		}
		withStory(&item, story)
	}
	data, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if _, err := b.store.PutIf(ctx, store.Message{Subject: subject, Data: data}, position); err != nil {
		return fmt.Errorf("escalation item: %w", err)
	}
	b.items.keep(&item)
	return nil
}

const statusOpen = "open"

// newer tells whether an item says more than what is known of it: once it is
// over it stays so, and rulings and events only become more.
func newer(old, item *api.EscalationItem) bool {
	if (old.Status == statusOpen) != (item.Status == statusOpen) {
		return old.Status == statusOpen
	}
	if len(old.Votes) != len(item.Votes) {
		return len(old.Votes) < len(item.Votes)
	}
	return old.Desk.Events < item.Desk.Events
}

// item shows an escalation with what is at stake in the session as it is now,
// and what people have done around it.
func (b *Broker) item(l *live, of *escalation.Item) api.EscalationItem {
	now := b.clock(l)
	view := api.ViewSession(&l.state, now)
	view.Escalation = api.ViewEscalation(of)
	desk := b.desks.of(of.ID)
	stake := atStake(&view)
	item := api.EscalationItem{
		EscalationView: *view.Escalation, Session: l.id, Purpose: view.Purpose, Proposal: stake,
		Previous: previous(&view, stake), Theirs: theirs(&view), Head: &view.Head,
		Route: routeOf(of, desk), Revision: desk.Revision + uint64(len(of.Votes)),
		Desk: api.Desk{
			Claim: desk.Claim, Assignee: desk.Assignee, Comments: desk.Comments, Views: len(desk.Views), Events: desk.Events,
		},
	}
	asOf(&item, now)
	return item
}

// routeOf shows who is asked.
func routeOf(of *escalation.Item, desk escalation.Desk) *api.Route {
	on := *of
	on.Route = desk.Route(of.Route)
	r := &api.Route{Rule: desk.Plan.Rule}
	for n, level := range on.Levels() {
		shown := api.Level{Approvers: level.Approvers, Quorum: level.Quorum, Approved: on.Approved(level), Due: stamp(level.Due)}
		if n < len(desk.Plan.Names) {
			shown.Name = desk.Plan.Names[n]
		}
		if n < len(desk.Plan.Remind) && !desk.Plan.Remind[n].IsZero() {
			shown.RemindAt = stamp(desk.Plan.Remind[n])
		}
		r.Levels = append(r.Levels, shown)
	}
	return r
}

// atStake is the proposal that an escalation names, else the newest open offer
// of another side: what the agent could not decide.
func atStake(v *api.SessionView) *api.OfferView {
	e := v.Escalation
	for i := len(v.Proposals) - 1; i >= 0; i-- {
		p := &v.Proposals[i]
		if e.Reference == p.Proposal || e.Reference == "" && p.Status == "open" && p.From != e.OnBehalfOf {
			return p
		}
	}
	for i := range v.Commitments {
		if e.Reference == v.Commitments[i].Commitment {
			return &v.Commitments[i]
		}
	}
	return nil
}

// previous is the offer that the one at stake countered.
func previous(v *api.SessionView, stake *api.OfferView) *api.OfferView {
	if stake == nil || stake.Supersedes == "" {
		return nil
	}
	i := slices.IndexFunc(v.Proposals, func(p api.OfferView) bool { return p.Proposal == stake.Supersedes })
	if i < 0 {
		return nil
	}
	return &v.Proposals[i]
}

// theirs are the parties who do not act for the principal concerned: what they
// wrote is their word. Humans who decide for it are of its side.
func theirs(v *api.SessionView) []performatives.Agent {
	var them []performatives.Agent
	for _, p := range v.Participants {
		side := cmp.Or(p.OnBehalfOf, p.Agent)
		ours := side == v.Escalation.OnBehalfOf || p.Role == session.Approver.String() && p.Agent.Organisation() == v.Escalation.Organisation
		if !ours {
			them = append(them, p.Agent)
		}
	}
	return them
}
