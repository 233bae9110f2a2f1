package server

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/activity"
	"github.com/parley-asp/parley/session"
)

// brokerStatus answers broker.status. An operator is no party: nothing of a deal is in it.
func (b *Broker) brokerStatus(ctx context.Context, c api.Caller, _ struct{}) (v api.Status, err error) {
	if !b.Parts.Registry.Operates(c) {
		return v, session.Refuse(session.Unauthorized, "only an operator reads this: an operator of the installation, or a human with the role operator by the rules")
	}
	now := b.Options.Now()
	v = api.Status{Broker: b.Options.ID, At: api.Timestamp(now), Principals: b.Parts.Registry.Count(), Limits: []api.LimitHit{}}
	if v.Brokers, err = b.Parts.Members.Status(ctx); err != nil {
		return v, err
	}
	if v.Streams, err = b.Parts.Store.Streams(ctx); err != nil {
		return v, err
	}
	for _, h := range b.Command.Accounts().Hits() {
		v.Limits = append(v.Limits, api.LimitHit{Who: h.Who, Limit: h.Limit, At: api.Timestamp(h.At), Times: h.Times})
	}
	v.Overdue.Escalations, v.Overdue.EscalationSince = b.Parts.Approvals.Overdue(now)
	n, since, err := b.Parts.Timers.Overdue(ctx)
	if v.Overdue.Timers = n; n > 0 {
		v.Overdue.TimerSince = api.Timestamp(since)
	}
	v.Overdue.HandedOver, _ = b.Parts.Members.HandedOver()
	if b.Options.Metrics == nil || err != nil {
		return v, err
	}
	var families activity.Families
	does, err := b.activity.Now(ctx, func() activity.Families { families = b.Options.Metrics.Families(); return families })
	v.Use, v.Activity = families.Uses(), &does
	return v, err
}

// operates reports whether a human has the role of an operator by the rules.
func (s *Server) operates(who performatives.Agent) bool {
	return s.Broker.Parts.Registry.Operates(api.Caller{Agent: who})
}
