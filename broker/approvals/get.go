package approvals

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Get answers escalation.get: an approval with its transcript, and for insiders with all that helps
// to decide; or a page of one of its parts, in full.
func (a *Approvals) Get(ctx context.Context, c api.Caller, q api.GetEscalation) (api.EscalationItem, error) {
	if err := checkGet(&q); err != nil {
		return api.EscalationItem{}, err
	}
	item, err := a.find(ctx, c, q.Escalation)
	if err != nil {
		return item, err
	}
	if a.isInsider(c, item.Organisation) {
		if item, err = a.current(ctx, c, item); err != nil {
			return item, err
		}
		if q.Part == "" {
			a.viewed(ctx, c, &item)
		}
	}
	if q.Part != "" {
		return a.part(ctx, c, item, &q)
	}
	if err := a.detail(ctx, &item); err != nil {
		return item, err
	}
	messages, err := a.o.Messages(ctx, c, api.ListMessages{Session: item.Session, Limit: api.MaxPage})
	addTranscript(&item, messages)
	return item, err
}

func checkGet(q *api.GetEscalation) error {
	switch {
	case q.Part == "" && q.Cursor > 0:
		return malformed("/cursor", "a cursor goes with a part: "+strings.Join(api.ItemParts(), ", "))
	case q.Part != "" && !slices.Contains(api.ItemParts(), q.Part):
		return malformed("/part", "part is one of "+strings.Join(api.ItemParts(), ", "))
	}
	return nil
}

func malformed(path, why string) error {
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}

// part is a page of a part of an approval.
func (a *Approvals) part(ctx context.Context, c api.Caller, item api.EscalationItem, q *api.GetEscalation) (api.EscalationItem, error) {
	switch q.Part {
	case api.PartChanges:
		if err := a.compare(ctx, &item); err != nil {
			return item, err
		}
		item.Changes, item.Next = pageOf(item.Changes, q)
	case api.PartComments:
		comments, err := a.comments(ctx, &item)
		if err != nil {
			return item, err
		}
		item.Comments, item.Next = pageOf(comments, q)
	case api.PartTranscript:
		messages, err := a.o.Messages(ctx, c, api.ListMessages{Session: item.Session, Since: q.Cursor, Limit: q.Limit})
		if err != nil {
			return item, err
		}
		item.Transcript, item.Opens, item.Next = messages.Messages, messages.Sealed, messages.Next
	}
	item.Proposal, item.Previous, item.Labels, item.TermsSchema = nil, nil, nil, nil // the whole item has them
	return item, nil
}

// pageOf is the page of a list that is asked for, and where the next one starts; nil is nowhere.
func pageOf[E any](all []E, q *api.GetEscalation) ([]E, *uint64) {
	page := api.NewPage[E](q.Limit)
	for n := min(q.Cursor, uint64(len(all))); n < uint64(len(all)); n++ {
		entry := all[n]
		fit.To(&entry, api.MaxPageBytes)
		if !page.Add(entry, fit.Size(entry)) {
			return page.Items, &n
		}
	}
	return page.Items, nil
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
			item, err := readItem(last.Data)
			if err != nil {
				return nil, err
			}
			return newApproval(item, a.o.Now()), nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// isInsider reports whether the approvals of an organisation are the caller's affair: then it also sees
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
	item.Hide(c.Opens, func(_ escalation.ID, sealer performatives.Agent) bool {
		return c.Agent == item.Arbiter && slices.Contains(item.Unsealed, sealer)
	})
	item.Due, item.Route, item.Case, item.Delegates, item.Unsealed, item.Revision, item.ViewHash = "", nil, api.Case{}, nil, nil, 0, ""
	return item, a.o.MayRead(ctx, c, item.Session)
}

// you is what the caller may do with an approval.
func (a *Approvals) you(c api.Caller, item *api.EscalationItem) *api.You {
	member, _ := a.o.Registry.Member(c.Agent)
	you := &api.You{Limits: member.Limits, Reads: !escalation.MayDecide(member, item.Organisation)}
	you.Voted = slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == c.Agent })
	level, asked := levelAsking(item, c.Agent)
	now := escalation.Case{Claim: item.Case.Claim}
	confirms := item.Confirms()
	switch {
	case item.Status != statusOpen:
		you.Why = "it is over: " + item.Status
	case !escalation.MayDecide(member, item.Organisation):
		you.Why = "you may look, but not decide"
	case item.Dispute != "":
		you.Why = "you answer the dispute: concede, deny, or offer something"
	case slices.Contains(item.Counterparties, c.Agent):
		you.Why = "you take part for the other side in this session"
	case slices.Contains(item.Delegates, c.Agent):
		you.Why = "you hold a delegation in this session, and may not decide while it lasts"
	case !asked:
		you.Why = "the rules ask other people"
	case level > item.Route.Level:
		you.Why = "you are asked if the level before you has not answered by " + item.Route.Levels[level-1].Due
	case now.HeldByAnother(c.Agent, a.o.Now()) != nil && a.locks(item, item.Case.Claim):
		you.Why = string(item.Case.Claim.By) + " has claimed it: take over, or wait until the claim ends"
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
		case member.Limited && item.Amount == nil && confirms:
			you.Why = "no amount can be found in what the agents agreed: you may deny it, or let a colleague without a ceiling decide"
		case member.Limited && item.Amount == nil:
			you.Why = "no amount can be found in the offer: say which term is the amount and how much of it is allowed, or hand it to somebody without a ceiling"
		case item.Amount != nil && !within(member, item.Amount) && confirms:
			you.Why = "the agreed amount is above your ceiling: you may deny it, or let a colleague with a higher one decide"
		case item.Amount != nil && !within(member, item.Amount):
			you.Why = "the amount at stake is above your ceiling: approve a smaller amount, or let a colleague with a higher one decide"
		}
	}
	return you
}

// within reports whether a human may approve an amount.
func within(member performatives.Member, amount *escalation.Amount) bool {
	return escalation.Within(member.Limits, &performatives.RulingsAuthority{MaxAmount: &amount.Value, Currency: amount.Currency})
}
