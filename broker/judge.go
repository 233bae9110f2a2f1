package broker

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// A judged act is accepted by Step and has yet to be appended.
type judged struct {
	next  session.State
	at    time.Time
	entry archive.Entry
	stamp performatives.Stamp
}

// judge applies the checks that need the session, in their order. Its only effect is that a
// deadline which has passed is appended.
func (b *Broker) judge(ctx context.Context, l *cachedSession, m *performatives.Message) (judged, error) {
	if seen, again := l.state.Seen(m.ID); again && seen.Sender == m.Sender && seen.Digest == m.Digest() {
		return judged{}, &session.Repeat{Seen: seen}
	}
	if err := b.Timely(m.Timestamp); err != nil {
		return judged{}, err
	}
	if err := checkBody(m); err != nil {
		return judged{}, err
	}
	if err := b.enterDeadlines(ctx, l, func() {}); err != nil {
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
	if _, registered := b.parts.Registry.Member(m.Recipient); registered {
		return nil
	}
	return session.Refuse(session.UnknownAgent, "%s is not registered", m.Recipient).With(map[string]any{"agentId": m.Recipient})
}

// Timely refuses a time that is too far from the broker's clock.
func (b *Broker) Timely(at time.Time) error {
	now := b.o.Now()
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
	if err := open(m); err != nil {
		return err
	}
	if err := m.DecodeBody(); err != nil {
		return session.RefuseSchema(session.Fault{Rule: "body", Message: err.Error()})
	}
	return nil
}

// Fits refuses what no session would take of an act now, by its body alone.
func (b *Broker) Fits(p performatives.Performative, body jsontext.Value) error {
	m := performatives.Message{Performative: p, RawBody: body}
	if err := checkBody(&m); err != nil {
		return err
	}
	return session.Fits(m.Body, b.o.Now())
}

// open checks the parts that came beside a message, and what they say by the schema of its body.
func open(m *performatives.Message) error {
	parts := m.Parts
	if err := m.Open(parts); err != nil {
		fault := session.Fault{Path: "/sealed", Rule: "sealed", Message: err.Error()}
		if at, ok := errors.AsType[*performatives.Malformed](err); ok {
			fault.Path = at.Path
		}
		return session.RefuseSchema(fault)
	}
	if len(parts) == 0 {
		return nil
	}
	if faults := schemas.Validate(m.Performative, m.OpenBody()); len(faults) > 0 {
		return session.RefuseSchema(asFaults(faults)...)
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
		Message: m, At: b.clock(l), Policy: b.o.Policy, Broker: b.o.Signer.Key(),
	}
	e.Allowed = func() []performatives.Performative { return b.allowed(&l.state, m.Sender, e.At) }
	know := func(a performatives.Agent) {
		if member, ok := b.parts.Registry.Member(a); ok && a != m.Sender {
			e.Known.Add(member)
		}
	}
	if me, ok := b.parts.Registry.Member(m.Sender); ok {
		if m.SignedBy != "" {
			me = b.parts.Registry.Signing(me, m.SignedBy) // perhaps a device's: the entry is verified with this key
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
	b.knowInvited(l, m, e.At, know)
	b.parts.Approvals.Route(&l.state, &e)
	if body, ok := m.Body.(performatives.Naming); ok {
		for _, a := range body.Names() {
			know(a)
		}
	}
	e.Terms = b.parts.Terms.Verdict(&l.state, m, func(check func()) { b.aside(l, m.Sender, check) })
	return e
}

// knowInvited gathers, for an answer to the invitation, what the context of the answering
// principal's card is held against.
func (b *Broker) knowInvited(l *cachedSession, m *performatives.Message, at time.Time, know func(performatives.Agent)) {
	if l.state.Phase != session.Invited || m.Performative != performatives.Accept && m.Performative != performatives.Counter {
		return
	}
	side := l.state.SideOf(m.Sender, at)
	if member, _ := b.parts.Registry.Member(side); len(member.Context) > 0 {
		for _, a := range l.state.Participants()[:l.state.Principals()] {
			know(a)
		}
	}
}

// seal makes the entry of an accepted act.
func (b *Broker) seal(l *cachedSession, m *performatives.Message, next session.State, at time.Time) (judged, error) {
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: l.state.Next, PreviousHash: l.state.Head,
		OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), b.o.Signer)
	if err != nil {
		return judged{}, err
	}
	made := archive.Entry{Data: entry}
	if made.Sealed, err = sealedHeader(m); err == nil {
		made.Routes, err = routesHeader(next.Last.Routes)
	}
	return judged{next, at, made, stamp}, err
}

// maxRoutes is how long the header with the names of approvers may be, beside the longest with parts.
const maxRoutes = 14 << 10

// routesHeader writes the routes that the entry has sealed, "" for none.
func routesHeader(routes []*performatives.Route) (string, error) {
	if len(routes) == 0 {
		return "", nil
	}
	written, err := json.Marshal(routes, json.Deterministic(true))
	if err == nil && len(written) > maxRoutes {
		err = session.RefuseTooLarge(maxRoutes, "the names of all whom the rules ask have at most %d bytes", maxRoutes)
	}
	return string(written), err
}

// maxSealed is how long the header with the parts of an act may be: a stream takes headers of 64 KiB.
const maxSealed = 48 << 10

// sealedHeader writes the parts that open a message, "" for none.
func sealedHeader(m *performatives.Message) (string, error) {
	if len(m.Parts) == 0 {
		return "", nil
	}
	sealed, err := m.Parts.Header()
	if err == nil && len(sealed) > maxSealed {
		err = session.RefuseTooLarge(maxSealed, "what an act seals has at most %d bytes, as JSON in ASCII", maxSealed)
	}
	return sealed, err
}

// meet registers, under --dev, the principals that an act brings in.
func (b *Broker) meet(ctx context.Context, m *performatives.Message, joined []performatives.Member) error {
	named := []performatives.Agent{m.Sender, m.Recipient}
	for _, member := range joined {
		named = append(named, member.Agent)
	}
	return b.parts.Registry.Meet(ctx, named...)
}
