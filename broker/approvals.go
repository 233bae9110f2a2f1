package broker

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/access"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/approvals"
	"github.com/parley-asp/parley/performatives"
)

func (b *Broker) openApprovals(ctx context.Context) (err error) {
	b.approvals, err = approvals.Open(ctx, approvals.Options{
		Store: b.store, Registry: b.registry, Sessions: approvalSessions{b}, Schema: b.terms.Lookup,
		Rules: b.Escalations, Dev: b.Dev, Log: b.Log, Now: b.Now,
	})
	return err
}

// reconcileApprovals makes the approvals of a session, and their case logs, agree with it.
func (b *Broker) reconcileApprovals(ctx context.Context, l *cachedSession) (err error) {
	if err := b.restoreEscalated(ctx, l); err != nil {
		return err
	}
	l.approvals, err = b.approvals.Reconcile(ctx, approvals.Session{
		State: &l.state, At: b.clock(l),
		Messages: func(ctx context.Context) (api.Messages, error) {
			return b.entries.Page(ctx, api.ListMessages{Session: l.id, Limit: api.MaxPage}, l.sequences, l.archived)
		},
	}, l.approvals)
	return err
}

// approvalSessions reads sessions for the escalation inbox.
type approvalSessions struct{ b *Broker }

func (s approvalSessions) MayRead(ctx context.Context, c api.Caller, id performatives.SessionID) bool {
	if !s.b.list.Names(ctx, id, c.Agent) && !s.b.registry.Audits(c) {
		return false // without loading the sessions of strangers
	}
	return s.b.access.Readable(ctx, c, id, func(*access.Session) error { return nil }) == nil
}

func (s approvalSessions) Messages(ctx context.Context, q api.ListMessages) (api.Messages, error) {
	return s.b.queries.SessionMessages(ctx, api.Caller{Operator: true}, q)
}

func (s approvalSessions) Terms(ctx context.Context, id performatives.SessionID, offer string) (terms jsontext.Value, err error) {
	err = s.b.view(ctx, id, func(l *cachedSession) {
		if o, known := l.state.Offer(offer); known {
			terms = o.Terms
		}
	})
	return terms, err
}

func (s approvalSessions) Reconcile(ctx context.Context, id performatives.SessionID) error {
	var failed error
	err := s.b.view(ctx, id, func(l *cachedSession) { failed = s.b.reconcileApprovals(s.b.work.Context(), l) })
	return cmp.Or(err, failed)
}

// Notified adds to the case log who was told of an approval, and how.
func (b *Broker) Notified(ctx context.Context, item *api.EscalationItem, told string) error {
	return b.approvals.Notified(ctx, item, told)
}

// Groups are the consumers of the groups that a human is in who may decide.
func (b *Broker) Groups(human performatives.Agent) []string { return b.approvals.Groups(human) }
