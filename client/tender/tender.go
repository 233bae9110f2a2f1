// Package tender negotiates with several agents side by side about the same request, and
// accepts one of their offers.
//
//	t, err := tender.New(c, tender.Request{Subject: "1,000 cups", Terms: terms})
//	if err != nil { … }
//	err = t.Invite(ctx, sellers, time.Minute)
//	bids, err := t.Gather(ctx, tender.Gathering{Until: time.Now().Add(time.Minute)})
//	best, found := tender.Rule{Lowest: "price"}.Best(bids)
//	err = t.Accept(ctx, best)
//
// A tender is nothing but its sessions, one with each agent. The ID of a session is the
// tender's plus a number from 1, and the invitation carries the request. So whoever has the
// tender's ID resumes it, after a crash too: everything is read from the broker.
//
// Accept first accepts, and then withdraws from the others: it withdraws our offers, rejects
// theirs, and closes. Each step is safe to repeat. No second offer is accepted, as long as one
// process at a time decides the tender. An offer of ours binds who accepts it and closes the
// session as completed, so several may be bound.
package tender

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Most is how many agents a tender invites at most.
const Most = 20

// A Request is what the agents are asked for. Every agent reads it in its invitation.
type Request struct {
	Subject string         `json:"subject"`
	Type    string         `json:"type,omitzero"`   // of offers; by default service-agreement
	Schema  string         `json:"schema,omitzero"` // the terms schema of every offer
	Terms   map[string]any `json:"terms,omitzero"`  // what to propose; nil waits for their offers
}

// A Tender is several sessions about one request.
type Tender struct {
	ID      performatives.SessionID
	Request Request

	// Policy answers offers with counter-offers, and makes the first one if the request has no
	// terms. It accepts nothing. nil answers nothing.
	Policy *negotiator.Policy

	c      *client.Client
	agents []performatives.Agent // of session 1, 2, …
}

// New makes a tender, with an ID. It says nothing to anybody yet.
func New(c *client.Client, r Request) (*Tender, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(id[14:], 0)
	if r.Type == "" {
		r.Type = "service-agreement"
	}
	return &Tender{ID: performatives.SessionID(id.String()), Request: r, c: c}, nil
}

// Invite invites agents, each to a session of its own, and gives them a time to answer. It
// ends at the first invitation that is refused; those invited before stay.
func (t *Tender) Invite(ctx context.Context, agents []performatives.Agent, within time.Duration) error {
	if n := len(t.agents) + len(agents); n == 0 || n > Most {
		return fmt.Errorf("a tender has 1 to %d agents; these are %d", Most, n)
	}
	for _, a := range agents {
		i := client.Invitation{
			ID: t.session(len(t.agents) + 1), ProposalID: invitation, With: []performatives.Agent{a}, Purpose: t.Request.Subject, InvitationTimeout: within,
		}
		if t.Request.Schema != "" {
			i.Schemas = []string{t.Request.Schema}
		}
		if _, err := t.c.Invite(ctx, i, client.Attach(attachment{t.Request})); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		t.agents = append(t.agents, a)
	}
	return nil
}

const invitation = "invitation"

// An attachment goes with the invitation.
type attachment struct {
	Request Request `json:"tender"`
}

// ErrNone means that a tender has no session.
var ErrNone = errors.New("there is no such tender of yours")

// Resume finds a tender by its ID.
func Resume(ctx context.Context, c *client.Client, id performatives.SessionID) (*Tender, error) {
	parsed, err := uuid.Parse(string(id))
	if err != nil || parsed.Version() != 7 || binary.BigEndian.Uint16(parsed[14:]) != 0 {
		return nil, fmt.Errorf("%s is not the ID of a tender: %w", id, ErrNone)
	}
	t := &Tender{ID: id, c: c}
	for n := 1; n <= Most; n++ {
		view, err := c.View(ctx, t.session(n))
		if refusal, is := errors.AsType[*session.Refusal](err); is && refusal.Code == session.UnknownSession {
			break
		}
		if err != nil {
			return nil, err
		}
		of := map[string]performatives.Agent{}
		for _, p := range view.Participants {
			of[p.Role] = p.Agent
		}
		if of["inviter"] != c.Agent() {
			return nil, fmt.Errorf("%s is not the ID of a tender: %w", id, ErrNone)
		}
		t.agents = append(t.agents, of["invitee"])
	}
	if len(t.agents) == 0 {
		return nil, fmt.Errorf("%s: %w", id, ErrNone)
	}
	return t, t.readRequest(ctx)
}

// readRequest reads the request from the first invitation.
func (t *Tender) readRequest(ctx context.Context) error {
	for raw, err := range t.c.Envelopes(ctx, t.session(1), 0) {
		if err != nil {
			return err
		}
		var first struct {
			Content struct {
				Context []attachment `json:"context"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &first); err != nil || len(first.Content.Context) != 1 {
			return fmt.Errorf("%s is not the ID of a tender: %w", t.ID, ErrNone)
		}
		t.Request = first.Content.Context[0].Request
		return nil
	}
	return ErrNone
}

// session is the ID of a session of the tender, from 1.
func (t *Tender) session(n int) performatives.SessionID {
	id := uuid.MustParse(string(t.ID))
	binary.BigEndian.PutUint16(id[14:], uint16(n)) //nolint:gosec // at most Most
	return performatives.SessionID(id.String())
}
