package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// desks are what people do around escalations. Each item has a subject of its
// own; each message on it is an event and the desk after it, so that the last
// one is enough to go on from, and all of them are the history. They are
// appended if the subject still ends where we think, by whichever broker.
type desks struct {
	b *Broker

	mu   sync.RWMutex
	byID map[escalation.ID]deskAt
}

// A deskAt is a desk and the position of its last event.
type deskAt struct {
	desk     escalation.Desk
	position uint64
}

// A deskEntry is a message of the stream.
type deskEntry struct {
	Event escalation.Event `json:"event"`
	Desk  escalation.Desk  `json:"desk"`
}

func (b *Broker) openDesks(ctx context.Context) error {
	b.desks = &desks{b: b, byID: map[escalation.ID]deskAt{}}
	return b.store.FollowAll(ctx, b.work, api.DeskStream, func(m store.Message) {
		if api.IsOfPeople(m.Subject) {
			return // for those who are told
		}
		var e deskEntry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			b.Log.Error("desk", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		b.desks.keep(escalation.ID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]), deskAt{e.Desk, m.Sequence})
	})
}

func (d *desks) keep(id escalation.ID, at deskAt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id].position < at.position {
		d.byID[id] = at
	}
}

// of is a desk as memory has it.
func (d *desks) of(id escalation.ID) escalation.Desk {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.byID[id].desk
}

// read is a desk as the stream has it now.
func (d *desks) read(ctx context.Context, org performatives.Organisation, id escalation.ID) (deskAt, error) {
	m, err := d.b.store.Last(ctx, api.DeskStream, api.DeskOf(org, string(id)))
	if m == nil || err != nil {
		return deskAt{}, err
	}
	var e deskEntry
	if err := json.Unmarshal(m.Data, &e); err != nil {
		return deskAt{}, err
	}
	at := deskAt{e.Desk, m.Sequence}
	d.keep(id, at)
	return at, nil
}

// errNothing means that there is nothing to note.
var errNothing = errors.New("nothing has happened")

// change notes what judge makes of the desk as it is, or returns its refusal.
func (d *desks) change(ctx context.Context, org performatives.Organisation, id escalation.ID, judge func(escalation.Desk) (escalation.Event, error)) (escalation.Desk, error) {
	for range maxRaces {
		at, err := d.read(ctx, org, id)
		if err != nil {
			return at.desk, err
		}
		e, err := judge(at.desk)
		if err != nil {
			return at.desk, err
		}
		next := at.desk.With(e)
		data, err := json.Marshal(deskEntry{e, next})
		if err != nil {
			return at.desk, err
		}
		sequence, err := d.b.store.PutIf(ctx, store.Message{Subject: api.DeskOf(org, string(id)), Data: data}, at.position)
		if err == nil {
			d.keep(id, deskAt{next, sequence})
			return next, d.b.store.Sync(api.DeskStream, len(data))
		}
		if !errors.Is(err, store.ErrConflict) {
			return at.desk, fmt.Errorf("desk: %w", err)
		}
	}
	return escalation.Desk{}, session.Busy()
}

// tend notes what the transcript and the clock have brought about: that the
// item was opened, voted on, decided, that its next level's turn has come.
func (b *Broker) tend(ctx context.Context, l *live, of *escalation.Item) error {
	missing := func(d escalation.Desk) (escalation.Event, error) {
		e, some := d.Missing(of, func() escalation.Plan { return b.plan(l, of) }, b.clock(l))
		if !some {
			return e, errNothing
		}
		return e, nil
	}
	for {
		if _, err := missing(b.desks.of(of.ID)); err != nil {
			return nil //nolint:nilerr // nothing is missing
		}
		if _, err := b.desks.change(ctx, of.Org, of.ID, missing); err != nil && !errors.Is(err, errNothing) {
			return err
		}
	}
}

// nextWake is when the session's timer is to go off: for its next deadline, or
// for the next that people are to be told about the escalation that pauses it.
func (b *Broker) nextWake(l *live, now time.Time) (time.Time, bool) {
	next, some := l.state.NextDeadline(now)
	if open := l.state.Escalation(); open != nil {
		if due, more := b.desks.of(open.ID).NextDue(open, now); more && (!some || due.Before(next)) {
			return due, true
		}
	}
	return next, some
}

// history is everything that happened around an item, oldest first.
func (d *desks) history(ctx context.Context, org performatives.Organisation, id escalation.ID) ([]escalation.Event, error) {
	subject := api.DeskOf(org, string(id))
	events := []escalation.Event{}
	for from := uint64(1); len(events) < maxHistory; {
		m, err := d.b.store.Next(ctx, api.DeskStream, from, subject)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		var e deskEntry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return nil, err
		}
		events = append(events, e.Event)
		from = m.Sequence + 1
	}
	return events, nil
}

// maxHistory bounds what one answer holds.
const maxHistory = 2000

// unknownEscalation answers for an item that is not there and for one that the
// caller may not see, in the same bytes.
func unknownEscalation() error {
	return session.Refuse(session.UnknownSession, "there is no such escalation, or you have no part in it")
}
