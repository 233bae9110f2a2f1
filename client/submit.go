package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Receipt says that an act was accepted, and as what.
type Receipt struct {
	api.Acceptance

	// ID is what a later act's referenceId calls this one: a proposalId,
	// commitmentId or queryId, or the messageId of a DELEGATE, CLARIFY or
	// ESCALATE. It is empty for acts that nothing refers to.
	ID string
}

// An Unanswered act was sent and not answered before the context ended: whether
// it was accepted is not known. Give Envelope to [Client.Submit] to ask again.
type Unanswered struct {
	Envelope []byte // the bytes that were sent
	Err      error  // why there is no answer
}

func (u *Unanswered) Error() string { return "not answered: " + u.Err.Error() }

// Unwrap is why there is no answer.
func (u *Unanswered) Unwrap() error { return u.Err }

// Submit sends an envelope as it is, signed already or for a broker under
// --dev, and again until it is answered or the context ends. An envelope that
// was accepted before is answered with its first acceptance and Duplicate set.
// The error is a refusal, an [*Unanswered], or says what is wrong with the
// envelope. A refusal whose code is not Judged says nothing of what was sent by
// an earlier call.
func (c *Client) Submit(ctx context.Context, envelope []byte) (api.Acceptance, error) {
	m, err := performatives.Read(envelope)
	if err != nil {
		return api.Acceptance{}, unfit(err)
	}
	reply, maybe, err := c.link.insist(ctx, api.Submit(c.agent, m.Session), envelope)
	if err != nil {
		if refusal, refused := errors.AsType[*session.Refusal](err); !maybe || refused && refusal.Code.Judged() {
			return api.Acceptance{}, err
		}
		return api.Acceptance{}, &Unanswered{envelope, err}
	}
	var accepted api.Acceptance
	if err := json.Unmarshal(reply, &accepted); err != nil {
		return api.Acceptance{}, &Unanswered{envelope, fmt.Errorf("the answer cannot be read: %w", err)}
	}
	c.inbox.accepted(accepted)
	return accepted, nil
}

// unfit words as the broker would what need not be sent to be refused.
func unfit(err error) error {
	if errors.Is(err, performatives.ErrTooLarge) {
		return session.Refuse(session.TooLarge, "%s", err)
	}
	if _, ok := errors.AsType[*performatives.Malformed](err); ok {
		return session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	return fmt.Errorf("client: %w", err)
}

// newID makes a UUIDv7, which sorts by when it was made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
