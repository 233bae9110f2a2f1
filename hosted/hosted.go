// Package hosted says what hosted agents want to say, for gateways: it makes the envelope,
// signs it with the agent's hosted key and submits it.
//
//	h := hosted.New(hosted.Options{Broker: b, Custody: b.Custody(), Keys: keys, Private: p, Now: time.Now})
//	accepted, err := h.Say(ctx, agent, id, "key k1", hosted.Said{Performative: "ACCEPT", Body: body})
//
// What is said again under the same key makes the same envelope, which the broker answers
// with its first acceptance, also after a restart. Other content under a key is refused.
// So is what is said again with its messageId, whatever its key.
package hosted

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/idempotency"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Broker answers verbs and judges envelopes for a principal that is authenticated.
// Refusals are *session.Refusal.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	SubmitAs(ctx context.Context, as performatives.Agent, s performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// CheckRate refuses a principal that has exceeded its rate.
	CheckRate(as performatives.Agent) error
}

// Custody signs for hosted agents. A nil signer signs nothing (--dev).
type Custody interface {
	Signer(ctx context.Context, a performatives.Agent) (performatives.Signer, error)
}

// Keys remember what was said under a key.
type Keys interface {
	Reserve(ctx context.Context, a performatives.Agent, key string, act idempotency.Act) (first idempotency.Act, repeat bool, err error)
	Replace(ctx context.Context, a performatives.Agent, key string, was, act idempotency.Act) error
	Get(ctx context.Context, a performatives.Agent, key string) (act idempotency.Act, found bool, err error)
}

// Private holds aside what a hosted inviter says for its own side alone.
type Private interface {
	KeepPrivate(ctx context.Context, a performatives.Agent, id performatives.SessionID, private jsontext.Value) error
}

// Options are what it needs.
type Options struct {
	Broker  Broker
	Custody Custody
	Keys    Keys
	Private Private
	Now     func() time.Time
}

// Agents says acts for hosted agents.
type Agents struct{ o Options }

// New makes it.
func New(o Options) *Agents { return &Agents{o} }

// A Said is what a hosted agent wants to say.
type Said struct {
	Performative string                  `json:"performative"`
	Body         jsontext.Value          `json:"body,omitzero"`
	Recipient    jsontext.Value          `json:"recipient,omitzero"`
	Constraints  jsontext.Value          `json:"constraints,omitzero"`
	Message      performatives.MessageID `json:"messageId,omitzero"` // "" makes one
	Context      []jsontext.Value        `json:"context,omitzero"`
}

// Say says something in a session, or in a new one if id is "". What is retried has a key.
func (h *Agents) Say(ctx context.Context, as performatives.Agent, id performatives.SessionID, key string, said Said) (accepted api.Acceptance, err error) {
	signer, err := h.o.Custody.Signer(ctx, as)
	if err != nil {
		return accepted, err
	}
	s := speech{Agents: h, as: as, session: id, key: key, said: said, signer: signer}
	made := idempotency.Act{Session: id, Message: said.Message, At: h.o.Now().UTC().Truncate(time.Millisecond)}
	if made.Session == "" {
		made.Session = performatives.SessionID(newID())
	}
	if made.Message == "" {
		made.Message = performatives.MessageID(newID())
	}
	if key == "" {
		return s.send(ctx, made)
	}
	if err := h.o.Broker.CheckRate(as); err != nil { // who sends too much fills no bucket with keys
		return accepted, err
	}
	if made.Content, err = content(id, said); err != nil {
		return accepted, err
	}
	for range maxTries {
		accepted, err = s.try(ctx, made)
		if !errors.Is(err, idempotency.ErrConflict) {
			return accepted, err
		}
	}
	return accepted, session.Busy()
}

// Before finds the session in which something was accepted under a key before.
func (h *Agents) Before(ctx context.Context, as performatives.Agent, key string) (id performatives.SessionID, accepted bool, err error) {
	made, found, err := h.o.Keys.Get(ctx, as, key)
	if err != nil || !found {
		return "", false, err
	}
	accepted, err = h.taken(ctx, as, made)
	return made.Session, accepted, err
}

// MaxKey is the length of a key that a client gives.
const MaxKey = 255

// KeyIn is what an HTTP request is retried by: its Idempotency-Key, "" for none.
func KeyIn(h http.Header) (string, error) {
	given := h.Values("Idempotency-Key")
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1 || given[0] == "" || len(given[0]) > MaxKey:
		const path = "/Idempotency-Key"
		return "", session.Refuse(session.MalformedEnvelope, "%s: has 1 to %d characters, once", path, MaxKey).With(map[string]string{"path": path})
	}
	return "key " + given[0], nil
}

// maxTries is how often an act is tried while others come under its key.
const maxTries = 5

// A speech is one act on its way.
type speech struct {
	*Agents
	as      performatives.Agent
	session performatives.SessionID // "" is a new one
	key     string
	said    Said
	signer  performatives.Signer
}

// try fails with idempotency.ErrConflict if another request was faster.
func (s speech) try(ctx context.Context, made idempotency.Act) (accepted api.Acceptance, err error) {
	first, repeat, err := s.o.Keys.Reserve(ctx, s.as, s.key, made)
	if err != nil {
		return accepted, err
	}
	if !repeat {
		return s.send(ctx, first)
	}
	if first.Content == made.Content {
		accepted, err = s.send(ctx, first)
		if !errors.Is(err, &session.Refusal{Code: session.StaleTimestamp}) {
			return accepted, err
		}
	} else if taken, err := s.taken(ctx, s.as, first); err != nil {
		return accepted, err
	} else if taken {
		return accepted, session.Refuse(session.Duplicate, "something else was accepted under this Idempotency-Key or messageId").
			With(map[string]any{"id": first.Message})
	}
	// The first attempt was not accepted. Its message id stays, so only one of the two can be.
	again := made
	again.Message = first.Message
	if s.session == "" {
		again.Session = first.Session
	}
	if err := s.o.Keys.Replace(ctx, s.as, s.key, first, again); err != nil {
		return accepted, err
	}
	return s.send(ctx, again)
}

// taken tells whether an act is in its session's transcript.
func (h *Agents) taken(ctx context.Context, as performatives.Agent, made idempotency.Act) (bool, error) {
	request, err := json.Marshal(api.ListMessages{Session: made.Session, Message: made.Message})
	if err != nil {
		return false, err
	}
	_, err = h.o.Broker.CallAs(ctx, as, api.SessionMessages.Name, request)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return false, nil
	}
	return err == nil, err
}

// send submits the envelope of an act. The same act makes the same bytes.
func (s speech) send(ctx context.Context, made idempotency.Act) (api.Acceptance, error) {
	body, private := s.said.withoutPrivate()
	if len(private) > 0 {
		if err := s.o.Private.KeepPrivate(ctx, s.as, made.Session, private); err != nil {
			return api.Acceptance{}, err
		}
	}
	draft := performatives.RawDraft{
		ID: made.Message, Session: made.Session, Timestamp: made.At, Sender: s.as,
		Performative: s.said.Performative, Recipient: s.said.Recipient, Body: body, Context: s.said.Context, Constraints: s.said.Constraints,
	}
	accepted, err := s.submit(ctx, draft)
	if isDuplicate(err) {
		again, found, failed := s.repeat(ctx, draft)
		if failed != nil {
			return accepted, failed
		}
		if found {
			draft = again
			accepted, err = s.submit(ctx, draft)
		}
	}
	for range maxTries {
		bound, wanted, failed := s.bind(ctx, draft, err)
		if failed != nil {
			return accepted, failed
		}
		if !wanted {
			break
		}
		accepted, err = s.submit(ctx, bound)
	}
	return accepted, err
}

func (s speech) submit(ctx context.Context, draft performatives.RawDraft) (api.Acceptance, error) {
	envelope, err := draft.Envelope(s.signer)
	if err != nil {
		return api.Acceptance{}, err
	}
	return s.o.Broker.SubmitAs(ctx, s.as, draft.Session, envelope)
}

func isDuplicate(err error) bool { return errors.Is(err, &session.Refusal{Code: session.Duplicate}) }

func newID() string { return uuid.Must(uuid.NewV7()).String() }
