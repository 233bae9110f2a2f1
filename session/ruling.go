package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// mayDecide refuses a human whom the route does not ask, or not yet, and one who is
// the other side in this session: nobody decides for both.
func (t *Command) mayDecide(item *escalation.Item) error {
	if t.From.Role <= Invitee && t.From.Agent != item.Principal {
		return Refuse(Unauthorized, "you are the other side in this session: somebody else decides for %s", item.Principal).
			With(map[string]any{"escalationId": item.ID, "whoCan": t.whoCan(item, nil)})
	}
	if item.Asks(t.From.Member, t.At) {
		return nil
	}
	levels := item.Levels()
	now := item.Level(t.At)
	whose := map[string]any{"escalationId": item.ID, "level": now + 1, "whoCan": levels[now].Approvers}
	if _, named := item.LevelOf(t.From.Agent); named {
		return Refuse(AuthorityExceeded, "your turn has not come: until %s others are asked, %s; one of them may transfer it to you",
			stamp(levels[now].Due), list(levels[now].Approvers)).With(whose)
	}
	return Refuse(Unauthorized, "you may decide for %s, but its rules ask others here: %s", item.Org, list(levels[now].Approvers)).With(whose)
}

func list(agents []performatives.Agent) string {
	if len(agents) == 0 {
		return "every human of the organisation who may decide"
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// mayDeny refuses a denial without a reason where the rules want one.
func (t *Command) mayDeny(item *escalation.Item, ruling performatives.RulingData) error {
	if ruling.Decision != performatives.Denied || item.Route == nil || !item.Route.ReasonToDeny || strings.TrimSpace(ruling.Comment) != "" || ruling.Sealed.Has(performatives.SealComment) {
		return nil
	}
	return RefuseSchema(Fault{Path: "/data/comment", Rule: "reason", Message: "data.comment must say why: the rules of " + string(item.Org) + " want a reason to deny"})
}

// mayApprove judges an approval: not by who asked for it, not twice, not above
// the human's ceiling, and about the same amount as the approvals before it.
func (t *Command) mayApprove(item *escalation.Item, ruling performatives.RulingData) error {
	if !escalation.Approves(ruling.Decision) {
		return nil
	}
	if t.From.Agent == item.By {
		return Refuse(Unauthorized, "you asked for this decision yourself: somebody else approves it").
			With(map[string]any{"escalationId": item.ID, "whoCan": t.whoCan(item, nil)})
	}
	if _, voted := item.VoteOf(t.From.Agent); voted {
		return Refuse(Duplicate, "you have approved this already, and %d more have to; you may still deny it", item.Missing(t.At)).
			With(map[string]any{"escalationId": item.ID, "missing": item.Missing(t.At)})
	}
	if ruling.Sealed.Has(performatives.SealAuthority) {
		return nil // the broker, which had it, has judged it
	}
	atStake, _ := t.State.Offer(item.Offer)
	if !t.Before(2) && ruling.Decision == performatives.Modified && escalation.ChangesNothing(ruling.Authority, item, bodyOf(atStake)) {
		return RefuseSchema(Fault{
			Path: "/data/authority", Rule: "changes", Message: "data.authority must change something when the decision is modified: approve what was asked for, or set a bound that differs from it",
		})
	}
	if a := ruling.Authority; a != nil && a.Scope == performatives.ThreadScope && !t.Before(3) && (len(t.threadsOf(atStake)) == 0 || item.Confirms()) {
		return RefuseSchema(Fault{
			Path: "/data/authority/scope", Rule: "thread", Message: "data.authority.scope cannot be thread: no proposal is at stake whose thread it could be",
		})
	}
	granted, seen := item.Granted(ruling.Authority, t.From.Limited)
	if !seen {
		can := t.whoCan(item, &performatives.RulingsAuthority{})
		return Refuse(AuthorityExceeded, "you have a ceiling, and no amount at stake can be seen: say which term is the amount and the most that it may be, in a currency, or deny; who has no ceiling: %s", nobodyElse(can)).
			With(map[string]any{"escalationId": item.ID, "limits": t.From.Limits, "whoCan": can})
	}
	if t.From.Limited && !t.event.Replayed && item.Frees(granted) {
		return Refuse(AuthorityExceeded, "the amount at stake, %s at %s, would be free: bound it, too, within your ceiling, %s",
			escalation.Money(item.Amount.Value, item.Amount.Currency), item.Amount.Path, ceilings(t.From.Limits)).
			With(map[string]any{"escalationId": item.ID, "limits": t.From.Limits, "amount": item.Amount})
	}
	over := t.From.Limited && !t.event.Replayed && escalation.OverCeiling(t.From.Limits, granted)
	if over || !escalation.Within(t.From.Limits, granted) {
		says := map[string]any{"escalationId": item.ID, "limits": t.From.Limits, "whoCan": t.whoCan(item, granted)}
		above := escalation.Bound{RulingsAuthority: *granted}
		if granted.MaxAmount != nil {
			says["maxAmount"], says["currency"] = granted.MaxAmount, granted.Currency
		} else {
			says["bounds"] = granted.Bounds
		}
		return Refuse(AuthorityExceeded, "%s is above your ceiling, %s; who can approve it: %s",
			&above, ceilings(t.From.Limits), nobodyElse(t.whoCan(item, granted))).With(says)
	}
	if err := t.mayOblige(item, ruling, granted, atStake); err != nil {
		return err
	}
	for _, v := range item.Votes {
		if v.Unopened {
			continue
		}
		var err error
		if granted, err = escalation.Intersect(v.Authority, granted); err != nil {
			return Refuse(AuthorityExceeded, "%s", err).With(map[string]any{"escalationId": item.ID, "authority": v.Authority})
		}
	}
	return nil
}

func bodyOf(o *Offer) jsontext.Value {
	if o == nil {
		return nil
	}
	return o.Body
}

// whoCan are the others whom the route names and who may grant an authority.
// The broker knows them; a replay needs no advice.
func (t *Command) whoCan(item *escalation.Item, granted *performatives.RulingsAuthority) []performatives.Agent {
	can := []performatives.Agent{}
	for _, m := range t.event.Known.sorted() {
		if m.Agent != t.From.Agent && m.Agent != item.By && item.Names(m) && (granted == nil || escalation.Within(m.Limits, granted) && (len(m.Limits) == 0 || !escalation.OverCeiling(m.Limits, granted))) {
			can = append(can, m.Agent)
		}
	}
	return can
}

// ruled enters a ruling. An approval that is not enough yet leaves the session
// paused; what enough have approved, or one has denied or answered, is decided.
func (t *Command) ruled(ruling performatives.RulingData) {
	open, granted := t.EscalationFor(t.Message), ruling.Authority
	if escalation.Approves(ruling.Decision) && !ruling.Sealed.Has(performatives.SealAuthority) {
		granted, _ = open.Granted(ruling.Authority, t.From.Limited)
	}
	item := open.With(escalation.Vote{
		By: t.From.Agent, Decision: ruling.Decision, Comment: ruling.Comment, Authority: granted,
		At: t.At, Message: t.Message.ID, Digest: t.decisionDigest(), Limited: t.From.Limited,
		Sealed: t.Message.Digests(), Unopened: ruling.Sealed.Has(performatives.SealAuthority),
		AsShown: ruling.Decision == performatives.Approved && !ruling.Sealed.Has(performatives.SealAuthority) && ruling.Authority.Boundless(),
	})
	t.changeItem(item)
	switch denied := ruling.Decision == performatives.Denied; {
	case escalation.Approves(ruling.Decision) && item.Missing(t.At) > 0:
		return
	case item.Confirms() && denied: // what one does not confirm, nobody needs to
		t.endItem(item, t.From.Agent, ruling.Decision)
		t.endItems(t.From.Agent, escalation.EndClosed)
		if item.OfDelivery() {
			t.acceptanceRuled(item, ruling.Decision)
		}
		return
	case item.OfDelivery():
		t.endItem(item, t.From.Agent, ruling.Decision)
		t.acceptanceRuled(item, ruling.Decision)
		return
	case item.Confirms():
	case denied && !t.Before(2):
		t.deny(item)
	case escalation.Approves(ruling.Decision):
		t.allow(item)
	}
	t.endItem(item, t.From.Agent, ruling.Decision)
}

// allow puts what enough humans have approved in force for the side that
// asked: the narrowest of it, in place of what an earlier ruling allowed.
func (t *Command) allow(item *escalation.Item) {
	var all *performatives.RulingsAuthority
	sealed := false
	for _, v := range item.Votes {
		if !escalation.Approves(v.Decision) {
			continue
		}
		if v.Unopened {
			t.bounds = t.bounds.With(item.Principal, &escalation.Bound{Escalation: item.ID, Sealed: true, Unopened: true})
			return
		}
		sealed = sealed || v.Sealed.Has(performatives.SealAuthority)
		if both, err := escalation.Intersect(all, v.Authority); err == nil { // mayApprove has seen to it
			all = both
		}
	}
	o, _ := t.State.Offer(item.Offer)
	only := asShown(item, o)
	if all == nil && only == nil {
		t.bounds = t.bounds.Without(item.Principal)
		return
	}
	all = cmp.Or(all, &performatives.RulingsAuthority{})
	bound := &escalation.Bound{RulingsAuthority: *all, Escalation: item.ID, Strict: !t.Before(3), Sealed: sealed, Only: only}
	if item.Route != nil {
		bound.Amounts = item.Route.Amounts
	}
	modified := false
	for _, v := range item.Votes {
		modified = modified || v.Decision == performatives.Modified
		if !escalation.Approves(v.Decision) || !v.Limited || v.Authority == nil {
			continue
		}
		c := escalation.Grant{RulingsAuthority: *v.Authority}
		if v.Decision == performatives.Approved {
			c.Shown = t.approvedAsShown(item, o, *v.Authority)
		}
		bound.Ceilings = append(bound.Ceilings, c)
	}
	if !modified {
		bound.Shown = t.approvedAsShown(item, o, *all)
	}
	if !t.Before(4) {
		bound.Escrow = cmp.Or(item.Amount, &escalation.Amount{})
	}
	if all.Scope == performatives.ThreadScope && !t.Before(3) {
		t.narrow(bound, t.threadsOf(o)[0], item.Principal) // mayApprove has seen to it
	}
	if all.TermsHash != "" && all.TermsHash == item.Terms {
		of := t.proposalOf(o) // whose terms these are
		if bound.Frame = t.frameOf(of, item.Principal); of.Status == Accepted {
			t.agreedBy(item.ID, of.ID)
		}
	}
	t.bounds = t.bounds.With(item.Principal, bound)
}

// asShown is the commitment, or the amendment, that somebody approved without a bound, and so as it was shown; nil where a
// proposal is at stake, whose exact terms an authority names.
func asShown(item *escalation.Item, o *Offer) *escalation.Exact {
	terms := commitmentTerms(o)
	if terms == "" || item.Terms != "" || !slices.ContainsFunc(item.Votes, func(v escalation.Vote) bool { return v.AsShown }) {
		return nil
	}
	return &escalation.Exact{Offer: o.ID, Terms: terms}
}

// narrow has a bound hold in one thread only: elsewhere what held before still does, and what
// was denied still is.
func (t *Command) narrow(bound *escalation.Bound, thread escalation.Thread, side performatives.Agent) {
	bound.Thread = &thread
	old, _ := t.bounds.Get(side)
	bound.Else = old.Without(thread)
	if old == nil {
		return
	}
	for _, d := range old.Denied {
		if o, _ := t.State.Offer(d.Offer); !slices.ContainsFunc(t.threadsOf(o), thread.Meets) {
			bound.Denied = append(bound.Denied, d)
		}
	}
}

// deny puts what a human has denied out of reach of the side that asked, until an
// approval. What was granted before stays as it is.
func (t *Command) deny(item *escalation.Item) {
	if item.Offer == "" {
		return
	}
	bound := escalation.Bound{Escalation: item.ID}
	if old, some := t.bounds.Get(item.Principal); some {
		bound = *old
	}
	o, _ := t.State.Offer(item.Offer)
	bound.Denied = append(slices.Clip(bound.Denied), escalation.Denial{Escalation: item.ID, Offer: item.Offer, Terms: item.Terms, CommitmentTerms: commitmentTerms(o)})
	t.bounds = t.bounds.With(item.Principal, &bound)
}

// withinRuling holds a side to the last rulings in what it agrees to by ACCEPT,
// COUNTER or COMMIT, or offers by PROPOSE. After the authority's time nothing is
// within it: the agent asks anew.
func (t *Command) withinRuling() error {
	bound, some := t.bounds.Get(t.Side)
	agrees := acts[t.Act].agrees
	if !some || t.about != nil || agrees == nil || t.draft != nil && t.draft.free {
		return nil
	}
	pledge, limited := t.pledge(bound)
	if !limited {
		return nil
	}
	if d, denied := t.denied(bound, pledge); denied {
		return Refuse(AuthorityExceeded, "a human has denied %q, and this %s would agree to it or cannot be told from it: ESCALATE for an approval", d.Offer, t.Act).
			With(map[string]any{"escalationId": d.Escalation, "decision": performatives.Denied, "referenceId": d.Offer})
	}
	bound = bound.For(pledge)
	if t.trusts(bound) {
		return nil
	}
	if bound != nil && bound.Unopened {
		return Refuse(AuthorityExceeded, "what the ruling allows is sealed, and its part is not here: ESCALATE for another").
			With(map[string]any{"escalationId": bound.Escalation})
	}
	if bound == nil || bound.Empty() && bound.Only == nil {
		return nil
	}
	more, twice := bound.Exceeded(pledge), t.agreedAlready(bound, pledge)
	says := map[string]any{"escalationId": bound.Escalation, "authority": bound.RulingsAuthority}
	if org := t.Side.Organisation(); bound.Sealed && t.From.Agent.Organisation() != org && (more != nil || twice != "" || bound.Expired(t.At)) {
		return Refuse(AuthorityExceeded, "this %s is not within what a human of %s allows, which is sealed for others: ask %s", t.Act, org, t.Side).
			With(map[string]any{"escalationId": bound.Escalation})
	}
	if bound.Expired(t.At) {
		return Refuse(AuthorityExceeded, "the authority of the ruling, %s, is over: ESCALATE for another", bound).With(says)
	}
	if more == nil && twice != "" {
		return Refuse(AuthorityExceeded, "what the ruling allows, %s, is agreed, or offered by you, as %q: ESCALATE to agree to it again, or WITHDRAW that", bound, twice).
			With(says)
	}
	if more == nil || more.Amount == nil && t.Act == performatives.Propose && t.Before(2) {
		return nil
	}
	if more.Amount != nil {
		says["amount"] = more.Amount
	} else if more.Path != "" {
		says["path"] = more.Path
	}
	if more.Bound != nil {
		says["bound"] = more.Bound
	}
	return Refuse(AuthorityExceeded, "the ruling allows %s, and of this %s %s; or ESCALATE for more", bound, t.Act, more.Why).With(says)
}

// trusts reports whether a bound is sealed and somebody else's, so that a replay takes the broker's
// word for what it allowed.
func (t *Command) trusts(bound *escalation.Bound) bool {
	return bound != nil && bound.Unopened && t.event.Replayed
}
