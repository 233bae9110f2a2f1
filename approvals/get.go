package approvals

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Get answers escalation.get: an approval with its transcript, and for insiders with all that helps
// to decide.
func (a *Approvals) Get(ctx context.Context, c api.Caller, q api.EscalationRef) (api.EscalationItem, error) {
	item, err := a.find(ctx, c, q.Escalation)
	if err != nil {
		return item, err
	}
	if a.isInsider(c, item.Organisation) {
		if item, err = a.current(ctx, c, item); err != nil {
			return item, err
		}
		a.viewed(ctx, c, &item)
		if err := a.detail(ctx, &item); err != nil {
			return item, err
		}
	}
	a.compare(&item)
	messages, err := a.o.Sessions.Messages(ctx, api.ListMessages{Session: item.Session, Limit: api.MaxPage})
	addTranscript(&item, messages)
	return item, err
}

// viewAgain is after how long a look at an approval counts as another one.
const viewAgain = 5 * time.Minute

// viewed appends to the case log that a human has looked. If it cannot, the human looks all the same.
func (a *Approvals) viewed(ctx context.Context, c api.Caller, item *api.EscalationItem) {
	if c.Operator || item.Status != statusOpen {
		return
	}
	looked := func(now escalation.Case) (escalation.Action, error) {
		at := a.o.Now()
		if last, before := now.Views[c.Agent]; before && at.Sub(last) < viewAgain {
			return escalation.Action{}, errNothing
		}
		return escalation.Action{Kind: escalation.Viewed, At: at.UTC(), By: c.Agent}, nil
	}
	if _, err := looked(a.cases.cached(item.ID)); err != nil {
		return
	}
	if err := a.cases.append(ctx, item.Organisation, item.ID, looked); err != nil {
		a.o.Log.Debug("a view is not in the case log", zap.Error(err))
	}
}

// find is an approval by its id, if the caller may see it.
func (a *Approvals) find(ctx context.Context, c api.Caller, id string) (api.EscalationItem, error) {
	k, known := a.queue.find(escalation.ID(id))
	if !known && a.isInsider(c, c.Agent.Organisation()) { // for nobody else is the stream searched
		var err error
		if k, err = a.fromStream(ctx, c, id); err != nil {
			return api.EscalationItem{}, err
		}
		known = k != nil
	}
	if known {
		if item, visible := a.seenBy(ctx, c, k); visible {
			return item, nil
		}
	}
	return api.EscalationItem{}, unknownEscalation()
}

var urgencies = []escalation.Urgency{escalation.Low, escalation.Medium, escalation.High, escalation.Critical}

// fromStream is an approval of the caller's organisation that memory has dropped, nil for none.
func (a *Approvals) fromStream(ctx context.Context, c api.Caller, id string) (*approval, error) {
	if _, err := performatives.ParseMessageID(id); err != nil {
		return nil, nil //nolint:nilerr,nilnil // it is no part of a subject
	}
	orgs := []performatives.Organisation{c.Agent.Organisation()}
	if c.Operator {
		orgs = a.queue.organisations()
	}
	for _, org := range orgs {
		for _, urgency := range urgencies {
			last, err := a.o.Store.Last(ctx, api.EscalationsStream, api.Escalation(org, string(urgency), id))
			if err != nil {
				return nil, err
			}
			if last == nil {
				continue
			}
			item := new(api.EscalationItem)
			if err := json.Unmarshal(last.Data, item); err != nil {
				return nil, err
			}
			return newApproval(item, a.o.Now()), nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// isInsider tells whether the approvals of an organisation are the caller's affair: then it also sees
// who is asked, and what colleagues do and say.
func (a *Approvals) isInsider(c api.Caller, org performatives.Organisation) bool {
	if c.Operator {
		return true
	}
	member, ok := a.o.Registry.Member(c.Agent)
	return ok && (escalation.MayDecide(member, org) || c.Agent.Organisation() == org && a.o.Registry.Audits(c))
}

// seenBy is an approval as a caller sees it now; false if it may not see it.
func (a *Approvals) seenBy(ctx context.Context, c api.Caller, k *approval) (api.EscalationItem, bool) {
	item := *k.EscalationItem
	if a.isInsider(c, item.Organisation) {
		asOf(&item, a.o.Now())
		if !c.Operator {
			item.You = a.you(c, &item)
		}
		return item, true
	}
	item.Due, item.Route, item.Case, item.Revision, item.ViewHash = "", nil, api.Case{}, 0, ""
	return item, a.o.Sessions.MayRead(ctx, c, item.Session)
}

// you is what the caller may do with an approval.
func (a *Approvals) you(c api.Caller, item *api.EscalationItem) *api.You {
	member, _ := a.o.Registry.Member(c.Agent)
	you := &api.You{Limits: member.Limits}
	you.Voted = slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == c.Agent })
	level, asked := levelAsking(item, c.Agent)
	now := escalation.Case{Claim: item.Case.Claim}
	switch {
	case item.Status != statusOpen:
		you.Why = "it is over: " + item.Status
	case !escalation.MayDecide(member, item.Organisation):
		you.Why = "you may look, but not decide"
	case slices.Contains(item.Counterparties, c.Agent):
		you.Why = "you take part for the other side in this session"
	case !asked:
		you.Why = "the rules ask other people"
	case level > item.Route.Level:
		you.Why = "you are asked if the level before you has not answered by " + item.Route.Levels[level-1].Due
	case now.HeldByAnother(c.Agent, a.o.Now()) != nil:
		you.Why = string(item.Case.Claim.By) + " has claimed it"
	default:
		you.Decide = true
		switch {
		case item.By == c.Agent:
			you.Why = "you sent this escalation yourself: you may deny it, but somebody else has to approve it"
		case you.Voted:
			you.Why = "you have approved it; you may still deny it"
		case member.Limited && item.Amount == nil && item.Route.NonMonetary == escalation.NonMonetaryTwo:
			you.Why = "no amount is at stake: you may approve exactly these terms, and so does a second human"
		case member.Limited && item.Amount == nil && item.Route.NonMonetary != "":
			you.Why = "no amount is at stake: you may approve exactly these terms"
		case member.Limited && item.Amount == nil:
			you.Why = "no amount can be found in the offer: say which term is the amount and how much of it is allowed, or hand it to somebody without a ceiling"
		case item.Amount != nil && !within(member, item.Amount):
			you.Why = "the amount at stake is above your ceiling: approve a smaller amount, or let a colleague with a higher one decide"
		}
	}
	return you
}

// within tells whether a human may approve an amount.
func within(member performatives.Member, amount *escalation.Amount) bool {
	return escalation.Within(member.Limits, &performatives.RulingsAuthority{MaxAmount: &amount.Value, Currency: amount.Currency})
}
