package reads

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// maxScanned bounds the sessions that one page of checks is chosen from.
const maxScanned = 500

// CheckList answers check.list.
func (x *Reads) CheckList(ctx context.Context, c api.Caller, q api.ListChecks) (api.Checks, error) {
	found := api.Checks{Checks: []api.Check{}}
	switch q.Status {
	case "", api.OpenChecks, api.OverChecks, api.AllChecks:
	default:
		return found, session.Refuse(session.MalformedEnvelope, "status is open, over or all").With(map[string]string{"path": "/status"})
	}
	last, err := sessionlist.ParseCursor(q.Cursor)
	if err != nil {
		return found, err
	}
	sessions, err := x.o.List.Page(ctx, sessionlist.One(c.Agent), "", last, maxScanned)
	if err != nil {
		return found, err
	}
	size := 0
	for _, at := range sessions {
		check, ok, err := x.check(ctx, c.Agent, at.Session())
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
				found.Next = last.Cursor()
				return found, nil
			}
			found.Checks = append(found.Checks, check)
		}
		last = at
	}
	if len(sessions) == maxScanned {
		found.Next = last.Cursor()
	}
	return found, nil
}

// check reads what was delegated to somebody in a session; ok is false for nothing.
func (x *Reads) check(ctx context.Context, a performatives.Agent, id performatives.SessionID) (check api.Check, ok bool, err error) {
	err = x.o.View(ctx, id, func(s *Session) {
		if s.State.Phase != session.Idle {
			check, ok = api.ViewCheck(&s.State, a, s.At)
		}
	})
	if errors.Is(err, transcript.ErrErased) {
		return check, false, nil
	}
	return check, ok, err
}

// CheckGet answers check.get.
func (x *Reads) CheckGet(ctx context.Context, c api.Caller, q api.SessionRef) (check api.Check, err error) {
	err = x.Existing(ctx, c, q.Session, func(s *Session) error {
		at := s.At
		var ok bool
		if check, ok = api.ViewCheck(&s.State, c.Agent, at); !ok {
			return session.NoSuchSession()
		}
		if s.State.MayRead(c.Agent, at) {
			check.AddOffer(&s.State, at, x.labels)
		}
		return nil
	})
	return check, err
}

// labels are what a terms schema calls the terms.
func (x *Reads) labels(name string) map[string]api.Label {
	if schema, ok := x.o.Terms.Lookup(name); ok && name != "" {
		return api.Labels(schema.Schema)
	}
	return nil
}
