package approvals

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// What an organisation has sealed of an escalation it may open to the arbiter of the session, one
// principal's parts at a time (COMMITMENTS.md C2). That is in the case log; the transcript stays as it is.

// Unseal answers escalation.unseal. To do it again changes nothing.
func (a *Approvals) Unseal(ctx context.Context, c api.Caller, q api.UnsealEscalation) (api.EscalationItem, error) {
	item, err := a.find(ctx, c, q.Escalation)
	if err != nil {
		return item, err
	}
	if member, _ := a.o.Registry.Member(c.Agent); c.Operator || !escalation.MayDecide(member, item.Organisation) {
		return item, session.Refuse(session.Unauthorized, "only the humans of %s who may decide open what it has sealed", item.Organisation)
	}
	sealer := cmp.Or(q.Sealer, item.By)
	switch {
	case item.Arbiter == "":
		return item, session.Refuse(session.WrongState, "the session has no arbiter to whom it could be opened")
	case !hasSealed(&item, sealer):
		return item, session.Refuse(session.UnknownAgent, "%.300s has sealed nothing of this escalation", sealer).
			With(map[string]any{"escalationId": item.ID, "sealer": sealer})
	}
	err = a.cases.append(ctx, item.Organisation, item.ID, func(now escalation.Case) (escalation.Action, error) {
		if slices.Contains(now.Unsealed, sealer) {
			return escalation.Action{}, errNothing
		}
		return escalation.Action{Kind: escalation.Unsealed, At: a.o.Now().UTC(), By: c.Agent, To: item.Arbiter, Sealer: sealer}, nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return item, err
	}
	if err := a.o.Reconcile(ctx, item.Session); err != nil {
		return item, err
	}
	if item, err = a.find(ctx, c, q.Escalation); err != nil {
		return item, err
	}
	return item, a.detail(ctx, &item)
}

// hasSealed reports whether a principal has sealed parts of an escalation, by its ESCALATE or a ruling.
func hasSealed(item *api.EscalationItem, sealer performatives.Agent) bool {
	return sealer == item.By && len(item.Sealed) > 0 ||
		slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == sealer && len(v.Sealed) > 0 })
}

// UnsealedFor says what of a session was opened to an agent, its arbiter; nil is nothing.
func (a *Approvals) UnsealedFor(ctx context.Context, s *session.State, to performatives.Agent) (api.Unsealed, error) {
	if p, _ := s.Party(to); to == "" || p.Role != session.Arbiter {
		return nil, nil
	}
	var items []*escalation.Item
	s.Escalations(func(item *escalation.Item) {
		if item.Dispute == "" {
			items = append(items, item)
		}
	})
	opened := map[escalation.ID][]performatives.Agent{}
	for _, item := range items {
		now, err := a.cases.read(ctx, item.Org, item.ID)
		if err != nil {
			return nil, err
		}
		if len(now.Unsealed) > 0 {
			opened[item.ID] = now.Unsealed
		}
	}
	return func(of escalation.ID, sealer performatives.Agent) bool { return slices.Contains(opened[of], sealer) }, nil
}
