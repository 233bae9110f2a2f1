package broker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// admit judges an envelope from a principal's submit subject and, if it is accepted, appends
// it to the transcript: load, Step, append if unchanged.
// The order of checks is PROTOCOL.md §3's; those on State are session.Step's.
func (b *Broker) admit(ctx context.Context, l *cachedSession, id performatives.SessionID, who performatives.Agent, data []byte) (api.Acceptance, error) {
	m, signed, err := b.read(id, who, data)
	if err != nil {
		return api.Acceptance{}, err
	}
	fresh := !l.loaded
	if fresh {
		foreign, err := b.access.Stranger(ctx, api.Caller{Agent: m.Sender}, id, m.Performative == performatives.Propose)
		if err != nil {
			return api.Acceptance{}, err
		}
		if foreign {
			return api.Acceptance{}, b.fromStranger(m, signed)
		}
	}
	if l.id != id {
		return api.Acceptance{}, errNoStranger
	}
	if err := b.load(ctx, l); err != nil {
		return api.Acceptance{}, b.trouble("load", l.id, err)
	}
	for range maxRaces {
		accepted, err := b.try(ctx, l, m, signed)
		switch {
		case err == nil:
			return accepted, nil
		case errors.Is(err, store.ErrConflict):
			if err := b.catchUp(ctx, l); err != nil {
				return api.Acceptance{}, b.trouble("catch up", l.id, err)
			}
		case errors.Is(err, store.ErrIndeterminate):
			b.Log.Warn("append not acknowledged; reading what happened", zap.String("session", string(l.id)), zap.Error(err))
			if _, err := b.current(ctx, l); err != nil {
				return api.Acceptance{}, b.trouble("read back", l.id, err)
			}
		case isRefusal(err) && fresh:
			// The session was loaded for this act. One more read would tell a stranger, by
			// its time, that the session exists. A PROPOSE in none is asked about here as one in
			// somebody else's session was in stranger.
			if m.Performative == performatives.Propose {
				if _, asked := b.access.Invited(ctx, api.Caller{Agent: m.Sender}, id); asked != nil {
					return api.Acceptance{}, asked
				}
			}
			return api.Acceptance{}, err
		case isRefusal(err):
			// Only the newest transcript may refuse.
			moved, currentErr := b.current(ctx, l)
			if currentErr != nil {
				return api.Acceptance{}, b.trouble("catch up", l.id, currentErr)
			}
			if !moved {
				return api.Acceptance{}, err
			}
		default:
			return api.Acceptance{}, b.trouble("admit", l.id, err)
		}
		fresh = false
	}
	b.Log.Warn("an act lost every race", zap.String("session", string(l.id)), zap.String("message", string(m.ID)))
	return api.Acceptance{}, session.Busy()
}

// maxRaces is how often an act is judged again because another broker appended first.
const maxRaces = 16

func isRefusal(err error) bool {
	var r *session.Refusal
	return errors.As(err, &r)
}

// trouble logs an internal cause and answers without it.
func (b *Broker) trouble(what string, id performatives.SessionID, err error) error {
	b.Log.Error(what, zap.String("session", string(id)), zap.Error(err))
	return session.Busy()
}

// A judged act is accepted by Step and has yet to be appended.
type judged struct {
	next  session.State
	at    time.Time
	entry []byte
	stamp performatives.Stamp
}

// try judges a message by the cached session, and appends it.
func (b *Broker) try(ctx context.Context, l *cachedSession, m *performatives.Message, signed func() error) (api.Acceptance, error) {
	act, err := b.judge(ctx, l, m)
	if forged := signed(); forged != nil {
		return api.Acceptance{}, forged // whatever else is wrong with it
	}
	var repeat *session.Repeat
	if errors.As(err, &repeat) {
		return acceptance(m, repeat.Seen, true), nil
	}
	if err != nil {
		return api.Acceptance{}, err
	}
	if err := b.fits(l, m, act.entry); err != nil {
		return api.Acceptance{}, err
	}
	leave, err := b.roomFor(l, m, &act.next)
	if err != nil {
		return api.Acceptance{}, err
	}
	defer leave()
	if err := b.addressed(l, m); err != nil {
		return api.Acceptance{}, err
	}
	if err := b.approvals.CheckSeen(ctx, &l.state, m, b.clock(l)); err != nil {
		return api.Acceptance{}, err
	}
	if err := b.meet(ctx, m, act.next.Last.Joined); err != nil {
		return api.Acceptance{}, err
	}
	if b.cluster.Isolated() {
		return api.Acceptance{}, session.Busy()
	}
	if err := b.enter(ctx, l, m, act); err != nil {
		return api.Acceptance{}, err
	}
	seen, _ := l.state.Seen(m.ID)
	return acceptance(m, seen, false), nil
}

// judge applies the checks that need the session, in their order. Its only effect is that a
// deadline which has passed is appended.
func (b *Broker) judge(ctx context.Context, l *cachedSession, m *performatives.Message) (judged, error) {
	if seen, again := l.state.Seen(m.ID); again && seen.Sender == m.Sender && seen.Digest == m.Digest() {
		return judged{}, &session.Repeat{Seen: seen}
	}
	if err := b.timely(m.Timestamp); err != nil {
		return judged{}, err
	}
	if err := checkBody(m); err != nil {
		return judged{}, err
	}
	if err := b.enterDeadlines(ctx, l); err != nil {
		return judged{}, err
	}
	if err := b.restore(ctx, l, m); err != nil {
		return judged{}, err
	}
	event := b.event(l, m)
	next, err := session.Step(l.state, event)
	if err != nil {
		return judged{}, err
	}
	return b.seal(l, m, next, event.At)
}

// addressed refuses a recipient that neither the session nor the registry knows
// (PROTOCOL.md §10).
func (b *Broker) addressed(l *cachedSession, m *performatives.Message) error {
	if _, party := l.state.Party(m.Recipient); m.Recipient == "" || party {
		return nil
	}
	if _, registered := b.registry.Member(m.Recipient); registered {
		return nil
	}
	return session.Refuse(session.UnknownAgent, "%s is not registered", m.Recipient).With(map[string]any{"agentId": m.Recipient})
}

func (b *Broker) timely(at time.Time) error {
	now := b.Now()
	if off := at.Sub(now); off > ClockSkew || off < -ClockSkew {
		return session.Refuse(session.StaleTimestamp, "timestamp is more than %s away from the broker's clock, %s", ClockSkew, now.UTC().Format(time.RFC3339Nano)).
			With(map[string]string{"now": now.UTC().Format(time.RFC3339Nano)})
	}
	return nil
}

// checkBody validates and decodes the body, once for a message.
func checkBody(m *performatives.Message) error {
	if m.Body != nil {
		return nil
	}
	if faults := schemas.Validate(m.Performative, m.RawBody); len(faults) > 0 {
		return session.RefuseSchema(asFaults(faults)...)
	}
	if err := m.DecodeBody(); err != nil {
		return session.Refuse(session.SchemaInvalid, "%s", err)
	}
	return nil
}

func asFaults(faults []schemas.Fault) []session.Fault {
	out := make([]session.Fault, len(faults))
	for i, f := range faults {
		out[i] = session.Fault(f)
	}
	return out
}

// event gathers what Step needs from outside: the time, the principals that the act names,
// and the verdict of the terms schema.
func (b *Broker) event(l *cachedSession, m *performatives.Message) session.Event {
	e := session.Event{
		Message: m, At: b.clock(l), Policy: b.Policy, Broker: b.Signer.Key(),
	}
	know := func(a performatives.Agent) {
		if member, ok := b.registry.Member(a); ok && a != m.Sender {
			e.Known.Add(member)
		}
	}
	if me, ok := b.registry.Member(m.Sender); ok {
		if m.SignedBy != "" {
			me = b.registry.Signing(me, m.SignedBy) // perhaps a device's: the entry is verified with this key
		}
		e.Known.Add(me)
	}
	invited := session.Invites(m)
	for _, a := range invited {
		know(a)
	}
	if invited != nil {
		for _, a := range append(invited, m.Sender) {
			if member, ok := e.Known.Get(a); ok && member.Standby != "" {
				know(member.Standby)
			}
		}
	}
	b.approvals.Route(&l.state, &e)
	if body, ok := m.Body.(performatives.Naming); ok {
		for _, a := range body.Names() {
			know(a)
		}
	}
	e.Terms = b.terms.Verdict(&l.state, m, func(check func()) { b.aside(l, m.Sender, check) })
	return e
}

// aside does long work for an act without its slot: acts that take little work do not
// wait for it. Such work runs one piece at a time, and principals take turns.
func (b *Broker) aside(l *cachedSession, a performatives.Agent, work func()) {
	l.waits()
	slot := b.checking.Enter(a)
	defer slot.Done()
	work()
}

// clock is the broker's time, but never before the session's last entry: time does not go
// backwards in a transcript, however the clocks of several brokers differ.
func (b *Broker) clock(l *cachedSession) time.Time {
	if now := b.Now(); now.After(l.state.Updated) {
		return now
	}
	return l.state.Updated
}

// seal makes the entry of an accepted act.
func (b *Broker) seal(l *cachedSession, m *performatives.Message, next session.State, at time.Time) (judged, error) {
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: l.state.Next, PreviousHash: l.state.Head,
		OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), b.Signer)
	return judged{next, at, entry, stamp}, err
}

// enter appends an act's entry and updates the cached session.
func (b *Broker) enter(ctx context.Context, l *cachedSession, m *performatives.Message, act judged) error {
	pending := b.cluster.Appending()
	l.waits()
	b.reaches(beforeAppend)
	position, err := b.store.Append(ctx, l.id, act.entry, l.last)
	if errors.Is(err, store.ErrIndeterminate) && l.indeterminate == nil {
		l.indeterminate = pending
		return err
	}
	b.cluster.Appended(pending, position)
	if err != nil {
		return err
	}
	b.reaches(appended)
	before, participants, agreements := l.state.Phase, len(l.state.Participants()), l.state.AgreementCount()
	l.unwritten = l.unwritten || b.Alone && act.stamp.Sequence == 0
	l.state, l.last, l.sequences = act.next.Sealed(m.ID, act.stamp.Hash), position, append(l.sequences, position)
	l.bytes += len(act.entry)
	l.unapplied = append(l.unapplied, delivery{
		sequence: act.stamp.Sequence, position: position, entry: act.entry, to: l.state.Audience(),
	})
	for _, a := range l.state.AgreementsAfter(agreements) {
		b.agreements.Made(l.id, a)
	}
	b.note(l, before, participants)
	b.announce(l, m, before, act.stamp)
	l.compact()
	return nil
}

func acceptance(m *performatives.Message, seen session.Seen, duplicate bool) api.Acceptance {
	return api.Acceptance{
		Accepted: true, Session: m.Session, Message: seen.ID, Sequence: seen.Sequence, Hash: seen.Hash,
		State: seen.Phase, AcceptedAt: seen.AcceptedAt.UTC().Format(performatives.TimeFormat), Duplicate: duplicate,
	}
}
