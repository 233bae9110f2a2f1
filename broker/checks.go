package broker

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
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
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		return check, session.NoSuchSession()
	}
	if strange, err := b.stranger(ctx, c, q.Session, false); err != nil {
		return check, err
	} else if strange {
		return check, session.NoSuchSession()
	}
	var ok bool
	if err := b.view(ctx, q.Session, func(l *cachedSession) {
		if l.state.Phase == session.Idle {
			return
		}
		at := b.clock(l)
		if check, ok = api.ViewCheck(&l.state, c.Agent, at); ok && l.state.MayRead(c.Agent, at) {
			check.AddOffer(&l.state, at, b.labels)
		}
	}); err != nil {
		return check, err
	}
	if !ok {
		return check, session.NoSuchSession()
	}
	return check, nil
}

// labels are what a terms schema calls the terms.
func (b *Broker) labels(name string) map[string]api.Label {
	if schema, ok := b.terms.Lookup(name); ok && name != "" {
		return api.Labels(schema.Schema)
	}
	return nil
}
