package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An act is a message in the making.
type act struct {
	performatives.Draft
	sign  func(performatives.Signer) error // what the body has signed; nil for nothing
	seals []string                         // members of the body
}

// An ActOption changes one act.
type ActOption func(*act) error

// To addresses the act: everybody receives it, and this principal is to answer.
func To(a performatives.Agent) ActOption {
	return func(m *act) error {
		m.Recipient = a
		return nil
	}
}

// Seal keeps members of an ESCALATE or a resolution from the other sides: the envelope has their
// digests, and only the sender's own organisation gets what they say (PROTOCOL.md §7).
func Seal(members ...string) ActOption {
	return func(m *act) error {
		m.seals = append(m.seals, members...)
		return nil
	}
}

// Because gives the reason of an ACCEPT, COUNTER, WITHDRAW or COMMIT.
func Because(reason string) ActOption {
	return func(m *act) error {
		b, ok := m.Body.(performatives.Explained)
		if !ok {
			return fmt.Errorf("client: Because does not go with %s", m.Body.Act())
		}
		b.Because(reason)
		return nil
	}
}

// Note adds free text to a PROPOSE, COUNTER, ACCEPT, REJECT or CLARIFY.
func Note(text string) ActOption {
	return func(m *act) error {
		b, ok := m.Body.(performatives.Remarked)
		if !ok {
			return fmt.Errorf("client: Note does not go with %s", m.Body.Act())
		}
		b.Remark().Message = text
		return nil
	}
}

// Assess adds an assessment, an object of the mode's shape, to a PROPOSE,
// COUNTER, ACCEPT, REJECT or CLARIFY.
func Assess(assessment any) ActOption {
	return func(m *act) error {
		b, ok := m.Body.(performatives.Remarked)
		if !ok {
			return fmt.Errorf("client: Assess does not go with %s", m.Body.Act())
		}
		var err error
		b.Remark().Assessment, err = object("the assessment", assessment)
		return err
	}
}

// Allow says which acts may answer this one.
func Allow(acts ...performatives.Performative) ActOption {
	return func(m *act) error {
		for _, p := range acts {
			m.constraints().AllowedPerformatives = append(m.constraints().AllowedPerformatives, p.String())
		}
		return nil
	}
}

// AnswerWithin says how soon an answer is hoped for, in whole milliseconds.
func AnswerWithin(d time.Duration) ActOption {
	return func(m *act) error {
		ms := float64(d.Milliseconds())
		m.constraints().MaxResponseTimeMs = &ms
		return nil
	}
}

// RequireTrust says which trust score, 0 to 100, who answers must have.
func RequireTrust(score float64) ActOption {
	return func(m *act) error {
		m.constraints().RequiredTrustScore = &score
		return nil
	}
}

// LinkTo gives the act its place in the transcript, which is then the sender's
// own word: [Session.Head] or the Next of the newest entry. An act whose place
// is taken by then is refused as chain_conflict.
func LinkTo(place performatives.Link) ActOption {
	return func(m *act) error {
		m.Link = &place
		return nil
	}
}

// As gives the act its messageId; by default it gets a new one.
func As(id performatives.MessageID) ActOption {
	return func(m *act) error {
		m.ID = id
		return nil
	}
}

// Attach adds values to content.context.
func Attach(values ...any) ActOption {
	return func(m *act) error {
		for _, v := range values {
			raw, err := value("what is attached", v)
			if err != nil {
				return err
			}
			m.Context = append(m.Context, raw)
		}
		return nil
	}
}

func (m *act) constraints() *performatives.Constraints {
	if m.Constraints == nil {
		m.Constraints = new(performatives.Constraints)
	}
	return m.Constraints
}

// ref is what a referenceId will call the act; it makes the id that the body
// lacks.
func (m *act) ref() string {
	if b, ok := m.Body.(performatives.Named); ok && m.Body.ID(m.ID) == "" {
		b.SetID(newID())
	}
	return m.Body.ID(m.ID)
}

// saying names the act in its error.
func saying(p performatives.Performative, err error) error {
	if _, refused := errors.AsType[*session.Refusal](err); refused {
		return fmt.Errorf("%s refused: %w", p, err)
	}
	return fmt.Errorf("%s: %w", p, err)
}

// value writes any value as JSON.
func value(what string, v any) (jsontext.Value, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("client: %s is no JSON: %w", what, err)
	}
	return raw, nil
}

// object writes a map or a struct as a JSON object; nil stays absent.
func object(what string, v any) (performatives.Object, error) {
	raw, err := value(what, v)
	switch {
	case err != nil:
		return nil, err
	case raw == nil || raw.Kind() == 'n':
		return nil, nil
	case raw.Kind() != '{':
		return nil, fmt.Errorf("client: %s must be a JSON object, such as a map or a struct", what)
	}
	return raw, nil
}

// moment writes a time that may be absent.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
