package broker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// admit judges an envelope from a principal's submit subject and, if it is accepted, appends
// it to the transcript: load, Step, append if unchanged.
// The order of checks is PROTOCOL.md §3's; those on State are session.Step's.
func (b *Broker) admit(ctx context.Context, l *cachedSession, id performatives.SessionID, who performatives.Agent, data []byte) (api.Acceptance, error) {
	m, err := b.read(id, who, data)
	if err != nil {
		return api.Acceptance{}, err
	}
	l.act.Is(m.Performative.String(), string(m.ID), m.Context)
	l.act.Reached(telemetry.Verify)
	if b.parts.Store.Broken() != nil { // who waits for the server waits in vain
		return api.Acceptance{}, session.Busy()
	}
	fresh := !l.loaded
	if fresh {
		outside, err := b.parts.Reads.NonParticipant(ctx, api.Caller{Agent: m.Sender}, id, m.Performative == performatives.Propose)
		if err != nil {
			return api.Acceptance{}, err
		}
		if outside {
			return api.Acceptance{}, b.fromNonParticipant(m)
		}
	}
	if l.id != id {
		return api.Acceptance{}, errParticipant
	}
	b.o.Metrics.Looked(!fresh)
	if fresh && m.Performative == performatives.Propose && l.indeterminate == nil && b.parts.List.IsNew(id) {
		fresh = false // there is nothing to load; whether that is so is checked when the act is appended, or refused
	} else if err := b.load(ctx, l); err != nil {
		return api.Acceptance{}, b.trouble("load", l.id, err, l.act.Field())
	}
	l.act.Reached(telemetry.Load)
	for range maxRaces {
		accepted, err := b.try(ctx, l, m)
		switch {
		case err == nil:
			return accepted, nil
		case errors.Is(err, store.ErrConflict):
			if err := b.catchUp(ctx, l); err != nil {
				return api.Acceptance{}, b.trouble("catch up", l.id, err, l.act.Field())
			}
		case errors.Is(err, store.ErrIndeterminate):
			b.o.Log.Warn("append not acknowledged; reading what happened", zap.String("session", string(l.id)), l.act.Field(), zap.Error(err))
			if _, err := b.current(ctx, l); err != nil {
				return api.Acceptance{}, b.trouble("read back", l.id, err, l.act.Field())
			}
		case isRefusal(err) && fresh:
			// The session was loaded for this act. One more read would tell a non-participant, by
			// its time, that the session exists. A PROPOSE in none is asked about here as one in
			// the session of others is in NonParticipant.
			if m.Performative == performatives.Propose {
				if _, asked := b.parts.Reads.Invited(ctx, api.Caller{Agent: m.Sender}, id); asked != nil {
					return api.Acceptance{}, asked
				}
			}
			return api.Acceptance{}, err
		case isRefusal(err):
			// Only the newest transcript may refuse.
			moved, currentErr := b.current(ctx, l)
			if currentErr != nil {
				return api.Acceptance{}, b.trouble("catch up", l.id, currentErr, l.act.Field())
			}
			if !moved {
				return api.Acceptance{}, err
			}
		default:
			return api.Acceptance{}, b.trouble("admit", l.id, err, l.act.Field())
		}
		fresh = false
	}
	b.o.Log.Warn("an act lost every race", zap.String("session", string(l.id)), zap.String("message", string(m.ID)), l.act.Field())
	return api.Acceptance{}, session.Busy()
}

// maxRaces is how often an act is judged again because another broker appended first.
const maxRaces = 16

func isRefusal(err error) bool {
	var r *session.Refusal
	return errors.As(err, &r)
}

// trouble logs an internal cause and answers without it.
func (b *Broker) trouble(what string, id performatives.SessionID, err error, more ...zap.Field) error {
	if errors.Is(err, errErased) {
		return session.NoSuchSession()
	}
	b.o.Log.Error(what, append(more, zap.String("session", string(id)), zap.Error(err))...)
	return session.Busy()
}

// try judges a message by the cached session, and appends it.
func (b *Broker) try(ctx context.Context, l *cachedSession, m *performatives.Message) (api.Acceptance, error) {
	act, err := b.judge(ctx, l, m)
	l.act.Reached(telemetry.Judge)
	var repeat *session.Repeat
	if errors.As(err, &repeat) {
		return acceptance(m, repeat.Seen, true), nil
	}
	if err != nil {
		return api.Acceptance{}, err
	}
	if err := b.fits(l, m, act.entry.Size()); err != nil {
		return api.Acceptance{}, err
	}
	leave, err := b.roomFor(ctx, l, m, &act.next)
	if err != nil {
		return api.Acceptance{}, err
	}
	defer leave()
	if err := b.addressed(l, m); err != nil {
		return api.Acceptance{}, err
	}
	if err := cmp.Or(b.parts.Approvals.CheckSeen(ctx, &l.state, m, b.clock(l)), checkDisputeSeen(&l.state, m)); err != nil {
		return api.Acceptance{}, err
	}
	if err := b.meet(ctx, m, act.next.Last.Joined); err != nil {
		return api.Acceptance{}, err
	}
	if b.parts.Members.Isolated() {
		return api.Acceptance{}, session.Busy()
	}
	if err := b.enter(ctx, l, m, act); err != nil {
		return api.Acceptance{}, err
	}
	seen, _ := l.state.Seen(m.ID)
	return acceptance(m, seen, false), nil
}

// aside does long work for an act without its slot: acts that take little work do not
// wait for it. Such work runs one piece at a time, and principals take turns.
func (b *Broker) aside(l *cachedSession, a performatives.Agent, work func()) {
	l.waits()
	slot := b.checking.Enter(a)
	defer slot.Release()
	work()
}

// clock is the broker's time, but never before the session's last entry: time does not go
// backwards in a transcript, however the clocks of several brokers differ.
func (b *Broker) clock(l *cachedSession) time.Time {
	if now := b.o.Now(); now.After(l.state.Updated) {
		return now
	}
	return l.state.Updated
}

// enter appends an act's entry and updates the cached session.
func (b *Broker) enter(ctx context.Context, l *cachedSession, m *performatives.Message, act judged) error {
	pending := b.parts.Members.Appending(l.id)
	l.waits()
	b.reaches(beforeAppend)
	position, err := b.parts.Store.Append(ctx, l.id, act.entry.Data, act.entry.Beside(), l.last)
	if errors.Is(err, store.ErrIndeterminate) && l.indeterminate == nil {
		l.indeterminate = pending
		return err
	}
	b.parts.Members.Appended(pending, position)
	l.act.Reached(telemetry.Append)
	if err != nil {
		return err
	}
	b.o.Metrics.Appended(position)
	b.reaches(appended)
	before, agreements := markOf(&l.state), l.state.AgreementCount()
	l.unwritten = l.unwritten || b.o.Alone && act.stamp.Sequence == 0
	l.loaded, l.state, l.last, l.sequences = true, act.next.Sealed(m.ID, act.stamp.Hash), position, append(l.sequences, position)
	l.bytes += act.entry.Size()
	if act.stamp.Sequence == 0 {
		l.inboxes = emptyInboxes(l.state.Participants())
	}
	d := delivery{
		sequence: act.stamp.Sequence, position: position, to: b.audience(&l.state),
		entry: act.entry, owner: ownerOf(m, act.stamp),
	}
	if !m.Sender.IsBroker() {
		d.trace = l.act.Onward()
	}
	l.unapplied = append(l.unapplied, d)
	for _, a := range l.state.AgreementsAfter(agreements) {
		b.parts.Reads.AgreementMade(l.id, a)
	}
	b.note(l, before)
	b.decided(l, act.stamp.Sequence)
	b.announce(l, m, before.state, act.stamp)
	l.compact()
	return nil
}

func acceptance(m *performatives.Message, seen session.Seen, duplicate bool) api.Acceptance {
	return api.Acceptance{
		Accepted: true, Session: m.Session, Message: seen.ID, Sequence: seen.Sequence, Hash: seen.Hash,
		State: seen.Phase, AcceptedAt: seen.AcceptedAt.UTC().Format(performatives.TimeFormat), Duplicate: duplicate,
	}
}

// errParticipant means that an act which waited as a non-participant's belongs in its session's queue.
var errParticipant = errors.New("the sender takes part in the session")

// fromNonParticipant judges a non-participant's act as one in no session, by the same order of checks.
func (b *Broker) fromNonParticipant(m *performatives.Message) error {
	err := b.Timely(m.Timestamp)
	if err == nil {
		err = checkBody(m)
	}
	if err != nil {
		return err
	}
	return session.NoSuchSession()
}
