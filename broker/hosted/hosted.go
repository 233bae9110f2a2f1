// Package hosted says what hosted agents want to say: it makes the envelope of an act, signs it with
// the agent's hosted key and submits it.
//
//	h, err := hosted.Open(ctx, hosted.Options{Store: s, Signer: custody.Signer, Look: look, Submit: submit, …})
//	accepted, err := h.Say(ctx, caller, api.Say{Session: id, Key: "k1", Performative: "ACCEPT", Body: body})
//
// These hold:
//   - What is said again under the same key, or with its messageId, is answered with its first
//     acceptance, also after a restart. Something else under it is refused.
//   - Of all that is said under one key, at most one act is accepted: attempts share a messageId.
//   - Where the mode has the sender link an act, it is linked to the head of the transcript and
//     carries the signature of the agreement. One that another act overtook is made anew.
//   - An act with ifHead is accepted at that head only.
package hosted

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options are what acts are made with. Refusals are *session.Refusal.
type Options struct {
	Store *store.Store
	// Signer signs for a hosted agent, or refuses. It is nil where nothing is signed.
	Signer func(ctx context.Context, a performatives.Agent) (performatives.Signer, error)
	// Look is a session as it is now, if the agent has a part in it.
	Look func(ctx context.Context, a performatives.Agent, id performatives.SessionID) (s session.State, at time.Time, err error)
	// Snapshot is the session as the agent may decide on it.
	Snapshot func(context.Context, api.Caller, api.GetSnapshot) (api.Snapshot, error)
	// Messages is a page of a transcript that the agent may read.
	Messages func(ctx context.Context, a performatives.Agent, q api.ListMessages) (api.Messages, error)
	// Submit submits an envelope of an agent.
	Submit func(ctx context.Context, a performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// KeepPrivate holds aside what a hosted inviter says for its own side alone; nil takes it away again.
	KeepPrivate func(ctx context.Context, a performatives.Agent, id performatives.SessionID, private jsontext.Value) error
	// Secret is the installation's; salts derive from it. Without one, retries after a restart seal anew.
	Secret []byte
	// Open has nothing sealed: the other sides read what agents ESCALATE and what rulings allow.
	Open bool
	// NewSession makes the id of a session.
	NewSession func() performatives.SessionID
	Now        func() time.Time
	Log        *zap.Logger
}

// Agents says acts for hosted agents.
type Agents struct {
	o    Options
	keys *store.Bucket // of acts, by the agent and the key that it gave
}

// Open opens the bucket of keys.
func Open(ctx context.Context, o Options) (*Agents, error) {
	if len(o.Secret) == 0 {
		o.Secret = []byte(rand.Text())
	}
	keys, err := o.Store.Bucket(ctx, api.IdempotencyBucket, "keys of acts of hosted agents", kept)
	return &Agents{o, keys}, err
}

// maxTries is how often an act is made anew because others came before it.
const maxTries = 16

// maxKey is the length of a key. Gateways put before a client's own what it is.
const maxKey = 1024

// Say answers session.say.
func (h *Agents) Say(ctx context.Context, c api.Caller, q api.Say) (accepted api.Acceptance, err error) {
	signer, err := h.o.Signer(ctx, c.Agent)
	if err != nil {
		return accepted, err
	}
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil && q.Session != "" {
		return accepted, session.NoSuchSession()
	}
	if len(q.Key) > maxKey {
		return accepted, session.RefuseUnreadable(&performatives.Malformed{Path: "/key", Why: fmt.Sprintf("has at most %d bytes", maxKey)})
	}
	if q.Asked != "" && !q.Asked.Valid() {
		return accepted, session.RefuseUnreadable(&performatives.Malformed{Path: "/asked", Why: "is no sha256: and 64 hex digits"})
	}
	made := Act{Session: q.Session, Message: q.Message, At: h.o.Now().UTC().Truncate(time.Millisecond)}
	if made.Session == "" {
		made.Session = h.o.NewSession()
	}
	if made.Message == "" {
		made.Message = performatives.MessageID(newID())
	}
	s := speech{Agents: h, as: c.Agent, signer: signer, said: q}
	if q.Key == "" {
		return s.say(ctx, made)
	}
	if made.Content, err = content(q); err != nil {
		return accepted, err
	}
	for range maxTries {
		if accepted, err = s.once(ctx, made); !errors.Is(err, store.ErrConflict) {
			return accepted, err
		}
	}
	return accepted, session.Busy()
}

// Before finds what was accepted under a key before, and its session. If it was asked for by another request
// than the one with the digest asked, it is refused; "" is any.
func (h *Agents) Before(ctx context.Context, a performatives.Agent, key string, asked performatives.Hash) (id performatives.SessionID, message performatives.MessageID, accepted bool, err error) {
	made, found, err := h.get(ctx, a, key)
	if err != nil || !found {
		return "", "", false, err
	}
	_, accepted, err = h.accepted(ctx, a, made)
	if accepted && asked != "" && strings.HasPrefix(string(made.Content), ofRequest) && made.Content != ofRequest+asked {
		err = reused(api.Say{Key: key, Asked: asked}, made.Message)
	}
	return made.Session, made.Message, accepted, err
}

// accepted is the session of an act, and whether the act is in its transcript.
func (h *Agents) accepted(ctx context.Context, a performatives.Agent, made Act) (session.State, bool, error) {
	state, _, err := h.o.Look(ctx, a, made.Session)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return session.State{}, false, nil
	}
	seen, has := state.Seen(made.Message)
	return state, has && seen.Sender == a, err
}

// A speech is one act on its way.
type speech struct {
	*Agents
	as     performatives.Agent
	signer performatives.Signer
	said   api.Say
}

// once says an act once under its key. It fails with store.ErrConflict if another request was faster.
func (s speech) once(ctx context.Context, made Act) (api.Acceptance, error) {
	if s.said.IfHead != "" { // noted, since the act may end the agent's part in the session, and is said again after that
		state, _, err := s.accepted(ctx, s.as, made)
		if err != nil {
			return api.Acceptance{}, err
		}
		if state.Next > 0 && state.Head == s.said.IfHead {
			made.Link = &performatives.Link{Sequence: state.Next, PreviousHash: state.Head}
		}
	}
	first, repeat, err := s.reserve(ctx, s.as, s.said.Key, made)
	if err != nil {
		return api.Acceptance{}, err
	}
	if !repeat {
		return s.say(ctx, first.Act)
	}
	if first.Content == made.Content {
		accepted, err := s.say(ctx, first.Act)
		if !errors.Is(err, &session.Refusal{Code: session.StaleTimestamp}) {
			return accepted, err
		}
	} else if state, taken, err := s.accepted(ctx, s.as, first.Act); err != nil {
		return api.Acceptance{}, err
	} else if taken {
		return api.Acceptance{}, reused(s.said, first.Message)
	} else if first.Link != nil && state.Next == 0 { // the first may have ended the agent's part
		return api.Acceptance{}, session.NoSuchSession()
	}
	// The first attempt was not accepted. Its message id stays, so only one of the two can be.
	again := made
	again.Message = first.Message
	if s.said.Session == "" {
		again.Session = first.Session
	}
	if err := s.replace(ctx, s.as, s.said.Key, first, again); err != nil {
		return api.Acceptance{}, err
	}
	return s.say(ctx, again)
}

// reused refuses an act under the key of another that was accepted.
func reused(said api.Say, first performatives.MessageID) error {
	of := "Idempotency-Key"
	if said.Asked != "" || said.Message != "" && strings.HasSuffix(said.Key, string(said.Message)) {
		of = "messageId"
	}
	return session.Refuse(session.Duplicate, "this %s was used before, and another act was accepted under it: say a new act under a new one", of).
		With(map[string]any{"id": first})
}

// say makes an act for the session as it is now, and again while others are faster.
func (s speech) say(ctx context.Context, made Act) (accepted api.Acceptance, err error) {
	body, private := withoutPrivate(s.said)
	for range maxTries {
		state, again, err := s.accepted(ctx, s.as, made)
		if err != nil {
			return accepted, err
		}
		now, said := made, s.said
		opens := private != nil && (again || state.Next == 0) // of any other act it is refused
		if opens {
			if err := s.o.KeepPrivate(ctx, s.as, made.Session, private); err != nil {
				return accepted, err
			}
			said.Body = body
		}
		switch act := performatives.Parse(said.Performative); {
		case again: // with what its entry has, it makes the same envelope if it says the same
			if now.At, now.Link, err = s.entered(ctx, made); err != nil {
				return accepted, err
			}
		case said.IfHead != "" && state.Next == 0:
			if now.Link == nil { // else it makes the same envelope as before it lost its part
				return accepted, session.NoSuchSession()
			}
		case said.IfHead != "" && said.IfHead != state.Head:
			return accepted, s.moved(ctx, state)
		case said.IfHead != "" || state.Mode != nil && state.Mode.Signed && answersOffers[act]:
			now.Link = &performatives.Link{Sequence: state.Next, PreviousHash: state.Head}
		}
		accepted, err = s.Submit(ctx, s.as, s.signer, now, said, &state)
		if opens && !again && err != nil {
			err = s.forget(ctx, made, err)
		}
		if !again && errors.Is(err, &session.Refusal{Code: session.Duplicate}) {
			if _, taken, lookErr := s.accepted(ctx, s.as, made); lookErr == nil && taken { // meanwhile, by the same request that was sent twice
				continue
			}
		}
		if again || now.Link == nil || !errors.Is(err, &session.Refusal{Code: session.ChainConflict}) {
			return accepted, err
		}
	}
	return accepted, session.Busy()
}

// forget takes away what was held aside for an invitation that was refused. Of one that may
// have been accepted all the same, it stays.
func (s speech) forget(ctx context.Context, made Act, err error) error {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	state, _, lookErr := s.accepted(ctx, s.as, made)
	if lookErr != nil || state.Next > 0 {
		return err
	}
	if left := s.o.KeepPrivate(ctx, s.as, made.Session, nil); left != nil {
		return errors.Join(err, left)
	}
	return err
}

// answersOffers are the acts that a mode which signs agreements has linked by their sender.
var answersOffers = map[performatives.Performative]bool{
	performatives.Propose: true, performatives.Counter: true, performatives.Accept: true, performatives.Reject: true, performatives.Withdraw: true,
}

// moved refuses an act whose head is not the session's any more, with what it would be decided on now.
func (s speech) moved(ctx context.Context, state session.State) error {
	snapshot, err := s.o.Snapshot(ctx, api.Caller{Agent: s.as}, api.GetSnapshot{Session: state.ID})
	if err != nil {
		return err
	}
	return session.Refuse(session.ChainConflict, "the head of the session is not ifHead any more: decide anew, by the snapshot in details").
		With(map[string]any{"sequenceNumber": state.Next, "previousHash": state.Head, "snapshot": snapshot})
}

// entered is the time and the link of an act's entry.
func (s speech) entered(ctx context.Context, made Act) (at time.Time, link *performatives.Link, err error) {
	page, err := s.o.Messages(ctx, s.as, api.ListMessages{Session: made.Session, Message: made.Message})
	if err != nil || len(page.Messages) == 0 {
		return made.At, made.Link, err
	}
	m, _, _, err := performatives.ReadDelivered(page.Messages[0])
	if err != nil {
		return made.At, made.Link, err
	}
	return m.Timestamp, m.Link, nil
}

// Submit makes the envelope of an act in a session, signs and submits it. The same act makes the
// same bytes.
func (h *Agents) Submit(ctx context.Context, as performatives.Agent, signer performatives.Signer, made Act, said api.Say, state *session.State) (accepted api.Acceptance, err error) {
	party, signs, err := h.party(ctx, as, signer, made, said, state)
	if err != nil {
		return accepted, err
	}
	body, later := said.Body, false
	if signs {
		own := state.OwnKey(as)
		if later = party.Later(body) && (own == "" || signer != nil && own == signer.Key()); later {
			said.Context, err = acceptsLater(party, said)
		} else {
			body, err = party.Complete(performatives.Parse(said.Performative), body)
		}
		if err != nil {
			return accepted, err
		}
	}
	body, parts, err := h.sealed(as, made, said, body)
	if err != nil {
		return accepted, err
	}
	envelope, err := performatives.RawDraft{
		ID: made.Message, Session: made.Session, Timestamp: made.At, Sender: as, Link: made.Link,
		Performative: said.Performative, Recipient: said.Recipient, Body: body, Context: said.Context, Constraints: said.Constraints,
	}.Envelope(signer)
	if err == nil {
		envelope, err = performatives.Submission(envelope, parts)
	}
	if err != nil {
		return accepted, session.RefuseUnreadable(err)
	}
	if accepted, err = h.o.Submit(ctx, as, made.Session, envelope); err == nil && later {
		h.signLater(ctx, party, said, accepted)
	}
	return accepted, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
