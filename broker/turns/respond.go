package turns

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/hosted"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// maxRaces is how often a response is made anew because the session went on.
const maxRaces = 16

// Respond answers turn.respond.
func (t *Turns) Respond(ctx context.Context, c api.Caller, q api.RespondTurn) (api.Acceptance, error) {
	worker, err := workerName(c.Agent, q.Worker)
	if err != nil {
		return api.Acceptance{}, err
	}
	say, err := speech(q)
	if err != nil {
		return api.Acceptance{}, err
	}
	for range maxRaces {
		accepted, err := t.respond(ctx, c.Agent, worker, q.ID, say)
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, &session.Refusal{Code: session.ChainConflict}) && say.envelope == nil:
			continue
		case errors.Is(err, &session.Refusal{Code: session.Duplicate}) && t.gone(ctx, c.Agent, q.ID): // another response was faster
			return accepted, errGone
		default:
			return accepted, err
		}
	}
	return api.Acceptance{}, session.Busy()
}

// said is what a worker says.
type said struct {
	act       string
	body      jsontext.Value
	recipient jsontext.Value
	envelope  []byte // signed, instead
	content   performatives.Hash
}

// speech reads what a worker says: an act, or an envelope.
func speech(q api.RespondTurn) (s said, err error) {
	if len(q.Envelope) > 0 {
		if q.Performative != "" || len(q.Body) > 0 {
			return s, session.Refuse(session.MalformedEnvelope, "/envelope: is all that there is to say; leave out performative and body").
				With(map[string]string{"path": "/envelope"})
		}
		return said{envelope: q.Envelope}, nil
	}
	s = said{act: q.Performative, body: q.Body, recipient: q.Recipient}
	if s.body, err = withRemarks(q); err != nil {
		return s, err
	}
	whole, err := json.Marshal([]any{s.act, s.body, s.recipient})
	if err != nil {
		return s, err
	}
	canonical, err := performatives.Canonical(whole)
	s.content = performatives.HashOf(canonical)
	return s, err
}

// withRemarks is the body with the assessment and the message that came beside it.
func withRemarks(q api.RespondTurn) (jsontext.Value, error) {
	if len(q.Assessment) == 0 && q.Message == "" {
		return q.Body, nil
	}
	members := map[string]jsontext.Value{}
	if len(q.Body) > 0 {
		if err := json.Unmarshal(q.Body, &members); err != nil || members == nil {
			return q.Body, nil //nolint:nilerr // the protocol refuses such a body
		}
	}
	if _, has := members["assessment"]; !has && len(q.Assessment) > 0 {
		members["assessment"] = q.Assessment
	}
	if _, has := members["message"]; !has && q.Message != "" {
		text, err := json.Marshal(q.Message)
		if err != nil {
			return nil, err
		}
		members["message"] = text
	}
	return json.Marshal(members, json.Deterministic(true))
}

// respond makes one attempt. store.ErrConflict and chain_conflict ask for another.
func (t *Turns) respond(ctx context.Context, a performatives.Agent, worker, name string, s said) (accepted api.Acceptance, err error) {
	if s.envelope != nil {
		if at, again := t.repeats(ctx, a, s.envelope); again {
			return t.o.Submit(ctx, a, at, s.envelope)
		}
	}
	id, found, w, err := t.claimed(ctx, a, name)
	if err != nil {
		return accepted, err
	}
	turn, waits := w.state.TurnOf(a, w.at)
	waits = waits && found.of(turn)
	again := false
	if r := found.Response; r != nil && s.envelope == nil && found.Worker == worker && r.Content == s.content {
		_, in := w.state.Seen(r.Message)
		again = in || waits && found.held(t.o.Now()) && r.Link != nil && r.Link.Sequence == w.state.Next && t.fresh(r.At)
	}
	if !again {
		if !waits {
			return accepted, errGone
		}
		if err := t.holds(found.claim, worker); err != nil {
			return accepted, err
		}
	}
	if s.envelope != nil {
		return t.o.Submit(ctx, a, found.Session, s.envelope)
	}
	signer, err := t.signer(ctx, a)
	if err != nil {
		return accepted, err
	}
	if !again {
		found.Response = t.response(found.Response, w, s)
		if err := t.write(ctx, id, &found); err != nil {
			return accepted, err
		}
	}
	made := *found.Response
	made.Session = found.Session
	said := api.Say{Performative: s.act, Body: s.body, Recipient: s.recipient}
	if accepted, err = t.o.Hosted.Submit(ctx, a, signer, made, said, &w.state); err != nil || found.Answered {
		return accepted, err
	}
	found.Answered = true
	if err := t.write(ctx, id, &found); err != nil && !errors.Is(err, store.ErrConflict) {
		t.o.Log.Debug("a claim was not marked as answered") // the turn is gone, or waits for its worker again
	}
	return accepted, nil
}

// repeats reports whether an envelope was accepted before, and in which session: a client that got no
// answer asks again, and the turn is gone by then.
func (t *Turns) repeats(ctx context.Context, a performatives.Agent, envelope []byte) (at performatives.SessionID, again bool) {
	m, err := performatives.Read(envelope)
	if err != nil {
		return "", false // it is refused where it is submitted
	}
	state, _, err := t.o.Look(ctx, a, m.Session)
	if err != nil {
		return "", false
	}
	_, again = state.Seen(m.ID)
	return m.Session, again
}

var errGone = about(session.WrongTurn, api.TurnGone, "the turn is gone: it was answered, or the session went on")

// gone reports whether a claimed turn waits no more.
func (t *Turns) gone(ctx context.Context, a performatives.Agent, name string) bool {
	_, found, w, err := t.claimed(ctx, a, name)
	turn, waits := w.state.TurnOf(a, w.at)
	return err == nil && (!waits || !found.of(turn))
}

// fresh reports whether an envelope of this time may still be submitted.
func (t *Turns) fresh(at time.Time) bool { return t.o.Now().Sub(at) < freshFor }

// freshFor is less than the broker allows.
const freshFor = 4 * time.Minute

// signer signs for an agent that is hosted.
func (t *Turns) signer(ctx context.Context, a performatives.Agent) (performatives.Signer, error) {
	signer, err := t.o.Signer(ctx, a)
	if refusal, is := errors.AsType[*session.Refusal](err); is && refusal.Code == session.Unauthorized {
		return nil, about(session.Unauthorized, api.TurnUnsigned, refusal.Message)
	}
	return signer, err
}

// response is what the answer to a turn is made of. One that was submitted before and not
// accepted keeps its id, so that only one of the two can be accepted.
func (t *Turns) response(before *hosted.Act, w waiting, s said) *hosted.Act {
	r := hosted.Act{
		Message: performatives.MessageID(uuid.Must(uuid.NewV7()).String()),
		At:      t.o.Now().UTC().Truncate(time.Millisecond), Content: s.content,
		Link: &performatives.Link{Sequence: w.state.Next, PreviousHash: w.state.Head},
	}
	if before != nil {
		r.Message = before.Message
	}
	return &r
}
