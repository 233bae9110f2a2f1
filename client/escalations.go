package client

import (
	"context"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// What people do around an escalation. None of it is in the transcript; each
// answers with the item as it is then.

// ClaimEscalation holds an item for so long, 0 for 10 minutes, while colleagues
// decide others. Who holds it already may do so again.
func (c *calls) ClaimEscalation(ctx context.Context, id string, lease time.Duration) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationClaim, api.ClaimEscalation{Escalation: id, Lease: lease.Milliseconds()})
}

// TakeOverEscalation claims an item that a colleague has claimed, who is told.
func (c *calls) TakeOverEscalation(ctx context.Context, id string, lease time.Duration) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationClaim, api.ClaimEscalation{Escalation: id, Lease: lease.Milliseconds(), TakeOver: true})
}

// ReleaseEscalation lets go of it; an operator releases anybody's.
func (c *calls) ReleaseEscalation(ctx context.Context, id string) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationRelease, api.EscalationRef{Escalation: id})
}

// AssignEscalation says whose it is to decide, "" for nobody's.
func (c *calls) AssignEscalation(ctx context.Context, id string, to performatives.Agent) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationAssign, api.AssignEscalation{Escalation: id, To: to})
}

// CommentEscalation writes to colleagues. It is sent once: if the answer is
// lost, the item tells whether it is there.
func (c *calls) CommentEscalation(ctx context.Context, id, text string) (item api.EscalationItem, err error) {
	return once(ctx, c, api.EscalationComment, api.CommentEscalation{Escalation: id, Text: text}, c.link.timeout)
}

// TransferEscalation hands an item to a colleague, or to a later level of its
// route before its time.
func (c *calls) TransferEscalation(ctx context.Context, t api.TransferEscalation) (api.EscalationItem, error) {
	return once(ctx, c, api.EscalationTransfer, t, c.link.timeout)
}

// EscalationHistory is everything that happened around an item, oldest first.
func (c *calls) EscalationHistory(ctx context.Context, id string) (api.CaseLog, error) {
	all := api.CaseLog{Escalation: id, Actions: []api.CaseAction{}}
	for cursor := uint64(0); ; {
		page, err := call(ctx, c, api.EscalationHistory, api.ReadCaseLog{Escalation: id, Cursor: cursor})
		if err != nil {
			return page, err
		}
		all.Actions = append(all.Actions, page.Actions...)
		if page.Next == nil {
			return all, nil
		}
		cursor = *page.Next
	}
}

// WatchEscalations returns what has changed since a cursor as soon as something
// has, or after q.Wait. Without a cursor it returns that of now.
func (c *calls) WatchEscalations(ctx context.Context, q api.WatchEscalations) (api.Watched, error) {
	return once(ctx, c, api.EscalationWatch, q, time.Duration(q.Wait)*time.Millisecond+c.link.timeout)
}
