package broker

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// readable reads a session if the caller may read it.
func (b *Broker) readable(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*cachedSession) error) error {
	return b.existing(ctx, c, id, func(l *cachedSession) error {
		party, has := l.state.Party(c.Agent)
		switch {
		case b.mayAudit(c, l) || b.decidesIn(c, l):
			return read(l)
		case !c.Operator && !has:
			return session.NoSuchSession()
		case !c.Operator && !l.state.MayRead(c.Agent, b.clock(l)):
			return b.mayNotRead(l, party)
		default:
			return read(l)
		}
	})
}

// existing looks at a session that exists. What a caller without a part in it may know is
// for look to say; a known stranger is refused before it.
func (b *Broker) existing(ctx context.Context, c api.Caller, id performatives.SessionID, look func(*cachedSession) error) error {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return session.NoSuchSession()
	}
	if foreign, err := b.stranger(ctx, c, id, false); err != nil {
		return err
	} else if foreign {
		return session.NoSuchSession()
	}
	var refusal error = session.NoSuchSession()
	if err := b.view(ctx, id, func(l *cachedSession) {
		if l.state.Phase != session.Idle {
			refusal = look(l)
		}
	}); err != nil {
		return err
	}
	return refusal
}

// listed reads what session.list shows. A delegate who was asked and has not joined sees
// that too.
func (b *Broker) listed(ctx context.Context, c api.Caller, id performatives.SessionID, read func(*cachedSession) error) error {
	var err error
	if looked := b.view(ctx, id, func(l *cachedSession) {
		if l.state.Phase == session.Idle {
			return // its retention is over
		}
		if c.Operator || l.state.HasPart(c.Agent) || b.mayAudit(c, l) || b.decidesIn(c, l) {
			err = read(l)
		}
	}); looked != nil {
		return looked
	}
	return err
}

// mayNotRead tells a delegate why it cannot read: not yet, or no longer.
func (b *Broker) mayNotRead(l *cachedSession, p session.Party) error {
	grant := l.state.GrantsOf(p, b.clock(l))[0]
	if grant.Status.String() == "declined" {
		return session.NoSuchSession()
	}
	if grant.Status.String() == "offered" {
		return session.Refuse(session.AuthorityExceeded, "join the session first: ACCEPT the DELEGATE %s, or send what its authority allows", grant.ID)
	}
	return session.Refuse(session.AuthorityExceeded, "your delegation in this session has ended")
}

func (b *Broker) sessionGet(ctx context.Context, c api.Caller, q api.GetSession) (api.SessionView, error) {
	var s session.State
	var at time.Time
	if err := b.readable(ctx, c, q.Session, func(l *cachedSession) error {
		s, at = l.state, b.clock(l)
		return nil
	}); err != nil {
		return api.SessionView{}, err
	}
	return api.ViewPage(&s, at, q) // the session goes on meanwhile
}

func (b *Broker) sessionList(ctx context.Context, c api.Caller, q api.ListSessions) (api.Sessions, error) {
	if q.State != "" {
		if _, ok := session.ParsePhase(q.State); !ok {
			return api.Sessions{}, session.Refuse(session.MalformedEnvelope, "there is no state %.40q", q.State)
		}
	}
	if q.Awaiting != "" && q.Awaiting != "me" {
		return api.Sessions{}, session.Refuse(session.MalformedEnvelope, `awaiting is "me" or absent`)
	}
	page, most := api.NewPage[api.SessionSummary](q.Limit), api.PageSize(q.Limit)
	for cursor := q.Cursor; ; {
		some, err := b.ofCaller(ctx, c, q.State, cursor, most+1)
		if err != nil {
			return api.Sessions{}, err
		}
		for _, id := range some {
			if len(page.Items) == most {
				return sessionsBefore(page), nil
			}
			cursor = string(id)
			full := false
			if err := b.listed(ctx, c, id, func(l *cachedSession) error {
				row := api.Summarise(&l.state, c.Agent, b.clock(l))
				if (q.State == "" || row.State.String() == q.State) && (q.Awaiting == "" || row.Awaiting) {
					api.Fit(&row, api.MaxRowBytes)
					full = !page.Add(row, api.Size(row))
				}
				return nil
			}); err != nil {
				return api.Sessions{}, err
			}
			if full {
				return sessionsBefore(page), nil
			}
		}
		if len(some) <= most {
			return api.Sessions{Sessions: page.Items}, nil
		}
	}
}

// sessionsBefore is a full page, and where the next one starts.
func sessionsBefore(page *api.PageOf[api.SessionSummary]) api.Sessions {
	return api.Sessions{Sessions: page.Items, Next: string(page.Items[len(page.Items)-1].Session)}
}

func (b *Broker) sessionMessages(ctx context.Context, c api.Caller, q api.ListMessages) (api.Messages, error) {
	var places []uint64
	var archived bool
	look := func(l *cachedSession) error {
		places, archived = l.sequences, l.archived
		if q.Message != "" {
			seen, has := l.state.Seen(q.Message)
			if !has {
				return session.Refuse(session.UnknownSession, "the session has no message %.36q", q.Message)
			}
			q.Since, q.Limit = seen.Sequence, 1
		}
		return nil
	}
	if err := b.readable(ctx, c, q.Session, look); err != nil {
		return api.Messages{}, err
	}
	if !archived {
		found, err := b.messages(ctx, places, q)
		if !errors.Is(err, errMoved) || !b.store.Archives() {
			return found, err
		}
	}
	return b.archivedMessages(ctx, q)
}

// messages reads a page of a transcript whose entries have these stream sequences.
func (b *Broker) messages(ctx context.Context, places []uint64, q api.ListMessages) (api.Messages, error) {
	found := api.Messages{Messages: []jsontext.Value{}}
	if q.Since >= uint64(len(places)) {
		return found, nil
	}
	next, size := q.Since, 0
	err := b.store.Read(ctx, api.SessionsStream, api.Session(q.Session), places[q.Since], func(e store.Message) error {
		if len(found.Messages) == api.PageSize(q.Limit) || size+len(e.Data) > api.MaxPageBytes && size > 0 {
			found.Next = &next
			return errPageFull
		}
		if next < uint64(len(places)) && e.Sequence != places[next] {
			return errMoved
		}
		found.Messages = append(found.Messages, e.Data)
		size += len(e.Data)
		next++
		return nil
	})
	if err == nil && next < uint64(len(places)) {
		err = errMoved
	}
	if err != nil && !errors.Is(err, errPageFull) {
		return found, err
	}
	return found, nil
}

var errPageFull = errors.New("the page is full")

// errMoved means that entries have left the stream: the session is moving to the archive.
var errMoved = errors.New("the session has left the stream")
