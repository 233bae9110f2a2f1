package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// A record keeps what was accepted.
type record interface {
	// load folds the transcript of a session.
	load(ctx context.Context, id performatives.SessionID) (*session.State, error)
	// add appends an act, and tells its readers. errTaken means that another one has its sequence number.
	add(ctx context.Context, id performatives.SessionID, entry []byte, stamp performatives.Stamp, at time.Time, readers []performatives.Agent) error
}

var errTaken = errors.New("another act has the sequence number")

// A judge validates acts, steps sessions and signs receipts, by parley's own rules. It has what all peers have in common.
type judge struct {
	signer performatives.Signer
	record record

	mu       sync.Mutex
	members  map[performatives.Agent]performatives.Member
	sessions map[performatives.SessionID]*cached
}

func newJudge(r record) (*judge, error) {
	signer, err := performatives.NewKey()
	return &judge{signer: signer, record: r, members: map[performatives.Agent]performatives.Member{}, sessions: map[performatives.SessionID]*cached{}}, err
}

// register registers an agent's key.
func (j *judge) register(agent performatives.Agent, key performatives.Key) error {
	if !key.Valid() {
		return session.Refuse(session.MalformedEnvelope, "no key")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.members[agent] = performatives.Member{Agent: agent, Key: key, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal}
	return nil
}

// A cached session spares reading the transcript for each act. The record decides: no two
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
func (j *judge) submit(ctx context.Context, who performatives.Agent, data []byte) (accepted acceptance, err error) {
	m, err := performatives.Read(data)
	if err != nil {
		return accepted, session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	if m.Sender != who {
		return accepted, session.Refuse(session.Unauthorized, "the sender is not the caller")
	}
	if faults := schemas.Validate(m.Performative, m.RawBody); len(faults) > 0 {
		return accepted, session.Refuse(session.SchemaInvalid, "the body is not valid").With(faults)
	}
	if err := m.DecodeBody(); err != nil {
		return accepted, session.Refuse(session.SchemaInvalid, "%s", err)
	}
	j.mu.Lock()
	key := j.members[m.Sender].Key
	j.mu.Unlock()
	if err := m.VerifySignature(key); err != nil {
		return accepted, session.Refuse(session.SignatureInvalid, "%s", err)
	}
	j.mu.Lock()
	c, ok := j.sessions[m.Session]
	if !ok {
		c = &cached{}
		j.sessions[m.Session] = c
	}
	j.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		accepted, err = j.step(ctx, c, m)
		if c.state == nil || c.state.Phase == session.Idle || c.state.Phase.Over() { // an act that comes all the same loads it
			j.mu.Lock()
			delete(j.sessions, m.Session)
			j.mu.Unlock()
		}
		if !errors.Is(err, errTaken) {
			return accepted, err
		}
		c.state = nil
	}
}

func (j *judge) step(ctx context.Context, c *cached, m *performatives.Message) (accepted acceptance, err error) {
	if c.state == nil {
		if c.state, err = j.record.load(ctx, m.Session); err != nil {
			return accepted, err
		}
	}
	at := time.Now()
	next, err := session.Step(*c.state, j.event(m, at))
	var repeat *session.Repeat
	if errors.As(err, &repeat) {
		return acceptance{Sequence: repeat.Seen.Sequence, Hash: repeat.Seen.Hash}, nil
	}
	if err != nil {
		return accepted, err
	}
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: c.state.Next, PreviousHash: c.state.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), j.signer)
	if err != nil {
		return accepted, err
	}
	if err := j.record.add(ctx, m.Session, entry, stamp, at, next.Audience()); err != nil {
		return accepted, err
	}
	next = next.Sealed(m.ID, stamp.Hash)
	c.state = &next
	return acceptance{stamp.Sequence, stamp.Hash, stamp.Receipt}, nil
}

// replay folds one more entry.
func replay(state session.State, entry []byte) (session.State, error) {
	m, stamp, _, err := performatives.ReadDelivered(entry)
	if err != nil {
		return state, err
	}
	return session.Replay(state, m, stamp)
}

// event is what Step sees of an act: parley's own rules, with its defaults.
func (j *judge) event(m *performatives.Message, at time.Time) session.Event {
	e := session.Event{Message: m, At: at, Broker: j.signer.Key(), Policy: performatives.Policy{
		Format:            performatives.Format,
		InvitationTimeout: session.DefaultInvitationTimeout.Milliseconds(),
		MaxDuration:       session.DefaultMaxDuration.Milliseconds(),
	}}
	named := append(session.Invites(m), m.Sender)
	if body, ok := m.Body.(performatives.Naming); ok {
		named = append(named, body.Names()...)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, agent := range named {
		if member, ok := j.members[agent]; ok {
			e.Known.Add(member)
		}
	}
	return e
}
