package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/store"
)

// maxScanned bounds the sessions that one page of checks is chosen from.
const maxScanned = 500

// checkList answers check.list.
func (b *Broker) checkList(ctx context.Context, c api.Caller, q api.ListChecks) (api.Checks, error) {
	found := api.Checks{Checks: []api.Check{}}
	switch q.Status {
	case "", api.OpenChecks, api.OverChecks, api.AllChecks:
	default:
		return found, session.Refuse(session.MalformedEnvelope, "status is open, over or all").With(map[string]string{"path": "/status"})
	}
	sessions, err := b.list.Page(ctx, sessionlist.One(c.Agent), "", q.Cursor, maxScanned)
	if err != nil {
		return found, err
	}
	size, last := 0, q.Cursor
	for _, id := range sessions {
		check, ok, err := b.check(ctx, c.Agent, id)
		if err != nil {
			return found, err
		}
		if open := check.Open(); ok && (q.Status == api.AllChecks || open != (q.Status == api.OverChecks)) {
			check = check.Brief()
			data, err := json.Marshal(check)
			if err != nil {
				return found, err
			}
			if size += len(data); len(found.Checks) == api.PageSize(q.Limit) || size > api.MaxPageBytes {
				found.Next = last
				return found, nil
			}
			found.Checks = append(found.Checks, check)
		}
		last = string(id)
	}
	if len(sessions) == maxScanned {
		found.Next = last
	}
	return found, nil
}

// check reads what was delegated to somebody in a session; ok is false for nothing.
func (b *Broker) check(ctx context.Context, a performatives.Agent, id performatives.SessionID) (check api.Check, ok bool, err error) {
	err = b.view(ctx, id, func(l *cachedSession) {
		if l.state.Phase != session.Idle {
			check, ok = api.ViewCheck(&l.state, a, b.clock(l))
		}
	})
	return check, ok, err
}

// checkGet answers check.get.
func (b *Broker) checkGet(ctx context.Context, c api.Caller, q api.SessionRef) (check api.Check, err error) {
	err = b.existing(ctx, c, q.Session, func(l *cachedSession) error {
		at := b.clock(l)
		var ok bool
		if check, ok = api.ViewCheck(&l.state, c.Agent, at); !ok {
			return session.NoSuchSession()
		}
		if l.state.MayRead(c.Agent, at) {
			check.AddOffer(&l.state, at, b.labels)
		}
		return nil
	})
	return check, err
}

// labels are what a terms schema calls the terms.
func (b *Broker) labels(name string) map[string]api.Label {
	if schema, ok := b.terms.Lookup(name); ok && name != "" {
		return api.Labels(schema.Schema)
	}
	return nil
}

// tellDelegates tells humans of what was delegated to them, each delegation once.
func (b *Broker) tellDelegates(ctx context.Context, l *cachedSession) error {
	for _, g := range l.state.GrantsAfter(l.told) {
		if g.To.IsHuman() && g.Status == delegation.Offered && !l.state.Phase.Over() {
			data, err := json.Marshal(api.AskedOf(&l.state, g, b.clock(l)))
			if err != nil {
				return err
			}
			// Its subject is its own: a second write conflicts with the first.
			sequence, err := b.store.PutIf(ctx, store.Message{Subject: api.PeopleOf(g.To.Organisation(), string(g.ID)), Data: data}, 0)
			if err == nil {
				err = b.store.Sync(api.CaseLogStream, sequence)
			}
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("notice of a delegation: %w", err)
			}
		}
		l.told++
	}
	return nil
}
