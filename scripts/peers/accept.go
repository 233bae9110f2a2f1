package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// A cached session spares reading the transcript for each act. PostgreSQL decides: no two
// acts get the same sequence number.
type cached struct {
	mu    sync.Mutex
	state *session.State // nil until it is loaded
}

// An acceptance is the answer to an act: its place in the transcript, and the receipt, of the first answer only.
type acceptance struct {
	Sequence uint64                `json:"sequenceNumber"`
	Hash     performatives.Hash    `json:"hash"`
	Receipt  performatives.Receipt `json:"receipt,omitzero"`
}

// submit validates an act and its signature, steps the session, signs the receipt and appends.
func (a *api) submit(r *http.Request, data []byte) (any, error) {
	m, err := performatives.Read(data)
	if err != nil {
		return nil, session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	if who, ok := a.caller(r); !ok || m.Sender != who {
		return nil, session.Refuse(session.Unauthorized, "the sender is not the caller")
	}
	if faults := schemas.Validate(m.Performative, m.RawBody); len(faults) > 0 {
		return nil, session.Refuse(session.SchemaInvalid, "the body is not valid").With(faults)
	}
	if err := m.DecodeBody(); err != nil {
		return nil, session.Refuse(session.SchemaInvalid, "%s", err)
	}
	a.mu.Lock()
	key := a.members[m.Sender].Key
	a.mu.Unlock()
	if err := m.VerifySignature(key); err != nil {
		return nil, session.Refuse(session.SignatureInvalid, "%s", err)
	}
	a.mu.Lock()
	c, ok := a.sessions[m.Session]
	if !ok {
		c = &cached{}
		a.sessions[m.Session] = c
	}
	a.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		accepted, err := a.step(r.Context(), c, m)
		if c.state == nil || c.state.Phase == session.Idle || c.state.Phase.Over() { // an act that comes all the same loads it
			a.mu.Lock()
			delete(a.sessions, m.Session)
			a.mu.Unlock()
		}
		var conflict *pgconn.PgError
		if !errors.As(err, &conflict) || conflict.Code != "23505" { // unique_violation: another API was first
			return accepted, err
		}
		c.state = nil
	}
}

// appendAct appends an act, updates its session and tells its readers, in one transaction.
const appendAct = `
WITH act AS (INSERT INTO acts VALUES ($1, $2, $5)),
     row AS (INSERT INTO sessions VALUES ($1, $4, $2 + 1, $3)
             ON CONFLICT (session) DO UPDATE SET state = excluded.state, acts = excluded.acts, updated = excluded.updated)
SELECT pg_notify('acts', reader || ' ' || $1::uuid || ' ' || $2::int) FROM unnest($6::text[]) AS reader`

func (a *api) step(ctx context.Context, c *cached, m *performatives.Message) (accepted acceptance, err error) {
	if c.state == nil {
		if c.state, err = a.load(ctx, m.Session); err != nil {
			return accepted, err
		}
	}
	at := time.Now()
	next, err := session.Step(*c.state, a.event(m, at))
	var repeat *session.Repeat
	if errors.As(err, &repeat) {
		return acceptance{Sequence: repeat.Seen.Sequence, Hash: repeat.Seen.Hash}, nil
	}
	if err != nil {
		return accepted, err
	}
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: c.state.Next, PreviousHash: c.state.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), a.signer)
	if err != nil {
		return accepted, err
	}
	readers := make([]string, 0, 1)
	for _, reader := range next.Audience() {
		readers = append(readers, string(reader))
	}
	if _, err := a.db.Exec(ctx, appendAct, string(m.Session), stamp.Sequence, at, stamp.Receipt.State, string(entry), readers); err != nil {
		return accepted, err
	}
	next = next.Sealed(m.ID, stamp.Hash)
	c.state = &next
	return acceptance{stamp.Sequence, stamp.Hash, stamp.Receipt}, nil
}

// load folds a transcript.
func (a *api) load(ctx context.Context, id performatives.SessionID) (*session.State, error) {
	state := session.New(id, modes.All())
	rows, err := a.db.Query(ctx, "SELECT entry FROM acts WHERE session = $1 ORDER BY sequence", string(id))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var entry string
		if err := rows.Scan(&entry); err != nil {
			return nil, err
		}
		m, stamp, _, err := performatives.ReadDelivered([]byte(entry))
		if err != nil {
			return nil, err
		}
		if state, err = session.Replay(state, m, stamp); err != nil {
			return nil, err
		}
	}
	return &state, rows.Err()
}

// event is what Step sees of an act: parley's own rules, with its defaults.
func (a *api) event(m *performatives.Message, at time.Time) session.Event {
	e := session.Event{Message: m, At: at, Broker: a.signer.Key(), Policy: performatives.Policy{
		Format:            performatives.Format,
		InvitationTimeout: session.DefaultInvitationTimeout.Milliseconds(),
		MaxDuration:       session.DefaultMaxDuration.Milliseconds(),
	}}
	named := append(session.Invites(m), m.Sender)
	if body, ok := m.Body.(performatives.Naming); ok {
		named = append(named, body.Names()...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, agent := range named {
		if member, ok := a.members[agent]; ok {
			e.Known.Add(member)
		}
	}
	return e
}
