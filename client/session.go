package client

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// A Session is one session as its principal's client sees it. It holds nothing
// but the id: what it says is asked of the broker.
//
// Its acts return a [Receipt], or an error as the package comment says. Options
// such as [To] go with any of them.
type Session struct {
	client *Client
	id     performatives.SessionID
}

// ID is the session's id.
func (s *Session) ID() performatives.SessionID { return s.id }

// View is the session as it stands.
func (s *Session) View(ctx context.Context) (api.SessionView, error) { return s.client.View(ctx, s.id) }

// Transcript is every entry so far, from the first.
func (s *Session) Transcript(ctx context.Context) ([]transcript.Entry, error) {
	return s.client.Transcript(ctx, s.id)
}

// Head is the place of the next entry, for [LinkTo].
func (s *Session) Head(ctx context.Context) (performatives.Link, error) {
	v, err := s.View(ctx)
	return performatives.Link{Sequence: v.Head.Next.Sequence, PreviousHash: v.Head.Next.PreviousHash}, err
}

// Say sends any act: all others are made of it. The body's own id, where it has
// one and it is empty, is made here, in the body that was given.
func (s *Session) Say(ctx context.Context, body performatives.Body, options ...ActOption) (Receipt, error) {
	a := act{Draft: performatives.Draft{
		ID: performatives.MessageID(newID()), Session: s.id, Timestamp: time.Now(),
		Sender: s.client.agent, Body: body,
	}}
	for _, set := range options {
		if err := set(&a); err != nil {
			return Receipt{}, err
		}
	}
	ref := a.ref()
	if a.Broker == "" && s.client.link.signer != nil {
		var err error
		if a.Broker, err = s.client.hearer(ctx); err != nil {
			return Receipt{}, saying(body.Act(), err)
		}
	}
	if a.sign != nil {
		if err := a.sign(s.client.link.signer); err != nil {
			return Receipt{}, err
		}
	}
	envelope, err := a.Submission(s.client.link.signer, rand.Reader, a.seals...)
	if err != nil {
		return Receipt{}, unfit(err)
	}
	accepted, err := s.client.Submit(ctx, envelope)
	if err != nil {
		return Receipt{}, saying(body.Act(), err)
	}
	return Receipt{accepted, ref}, nil
}

// An Invitation opens a session. With is required; the rest has defaults.
type Invitation struct {
	With              []performatives.Agent // who is invited
	Purpose           string
	Schemas           []string      // terms schemas that offers may name, such as service-agreement-v1
	Mode              string        // by default asp/1
	MaxDuration       time.Duration // from the acceptance on; by default 24 h, at most 30 d; whole milliseconds
	InvitationTimeout time.Duration // by default 24 h; whole milliseconds
	Policy            any           // parameters of the mode
	SeedAssessment    *performatives.SeedAssessment
	ID                performatives.SessionID // by default a new one
	ProposalID        string                  // of the invitation itself; by default a new one
}

// Invite opens a session. It is INTRODUCED once everybody invited has accepted:
//
//	s, err := c.Invite(ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "log ingestion"})
//	…
//	_, err = s.Await(ctx, performatives.Accept)
func (c *Client) Invite(ctx context.Context, i Invitation, options ...ActOption) (*Session, error) {
	policy, err := object("Policy", i.Policy)
	if err != nil {
		return nil, err
	}
	terms, err := object("the invitation", performatives.InvitationTerms{
		Purpose: i.Purpose, Schemas: i.Schemas, Participants: i.With, Mode: i.Mode,
		MaxDuration: i.MaxDuration.Milliseconds(), InvitationTimeoutMs: i.InvitationTimeout.Milliseconds(),
		Policy: policy, SeedAssessment: i.SeedAssessment,
	})
	if err != nil {
		return nil, err
	}
	subject := i.Purpose
	if subject == "" {
		subject = "session"
	}
	if len(i.With) == 1 {
		options = append([]ActOption{To(i.With[0])}, options...)
	}
	if i.ID == "" {
		i.ID = performatives.SessionID(newID())
	}
	s := c.Session(i.ID)
	_, err = s.Say(ctx, &performatives.ProposeBody{
		ProposalID: i.ProposalID, Type: performatives.SessionInvitation, Subject: subject, Terms: terms,
	}, options...)
	if err != nil {
		return nil, err
	}
	return s, nil
}
