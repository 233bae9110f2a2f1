package hosted

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/calls"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// In a mode that binds, an act names the head of the transcript, and an offer and its ACCEPT
// carry a signature of the agreement. A hosted agent has no key to make that with, so it is
// made here once the broker asks for it.

// bind is the draft as the broker wants it that refused it for err; false if it wants nothing
// that can be added.
func (s speech) bind(ctx context.Context, draft performatives.RawDraft, err error) (bound performatives.RawDraft, wanted bool, failed error) {
	act := performatives.Parse(draft.Performative)
	binds := act == performatives.Propose || act == performatives.Counter || act == performatives.Accept
	if !binds && act != performatives.Reject && act != performatives.Withdraw {
		return draft, false, nil
	}
	// A duplicate that names a head was perhaps accepted before, with what is added here.
	repeated := isDuplicate(err) && draft.Link != nil
	if !repeated && !wantsLink(err) && !errors.Is(err, &session.Refusal{Code: session.ChainConflict}) {
		return draft, false, nil
	}
	var view api.SessionView
	if failed := s.ask(ctx, api.SessionGet.Verb, api.GetSession{Session: draft.Session}, &view); failed != nil {
		return draft, false, failed
	}
	if !repeated {
		draft.Link = &performatives.Link{Sequence: view.Head.Next.Sequence, PreviousHash: view.Head.Next.PreviousHash}
	}
	if binds {
		p := agreement.Party{Signer: s.signer, Session: draft.Session, Message: draft.ID, At: draft.Timestamp, Self: s.as}
		p.Inherited = view.Inherits()
		for _, other := range view.Participants {
			if other.Agent != s.as && (other.Role == session.Inviter.String() || other.Role == session.Invitee.String()) {
				p.Other = other.Agent
			}
		}
		if act == performatives.Accept {
			if p.Offer, failed = s.offer(ctx, view, draft.Body); failed != nil {
				return draft, false, failed
			}
		}
		draft.Body, failed = p.Complete(act, draft.Body)
	}
	return draft, failed == nil, failed
}

// wantsLink tells whether an act was refused because it does not name the head.
func wantsLink(err error) bool {
	var details struct {
		Rule string `json:"rule"`
	}
	refusal, is := errors.AsType[*session.Refusal](err)
	if !is || refusal.Code != session.ModeViolation {
		return false
	}
	raw, failed := json.Marshal(refusal.Details)
	return failed == nil && json.Unmarshal(raw, &details) == nil && details.Rule == "linked"
}

// repeat is the draft with the time and the link of the agent's own entry with its id; false if there is none.
// If it says the same, it makes the same envelope.
func (s speech) repeat(ctx context.Context, draft performatives.RawDraft) (again performatives.RawDraft, found bool, failed error) {
	var page api.Messages
	err := s.ask(ctx, api.SessionMessages.Verb, api.ListMessages{Session: draft.Session, Message: draft.ID}, &page)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return draft, false, nil // there is no entry with this id
	}
	if err != nil || len(page.Messages) == 0 {
		return draft, false, err
	}
	m, _, _, err := performatives.ReadDelivered(page.Messages[0])
	if err != nil || m.Sender != s.as {
		return draft, false, err
	}
	draft.Timestamp, draft.Link = m.Timestamp, m.Link
	return draft, true, nil
}

// offer is the body of the offer that an ACCEPT names, nil for none.
func (s speech) offer(ctx context.Context, view api.SessionView, body jsontext.Value) (performatives.Body, error) {
	var names struct {
		Reference string `json:"referenceId"`
	}
	if json.Unmarshal(body, &names) != nil {
		return nil, nil //nolint:nilerr // the broker says what is wrong with it
	}
	for _, o := range view.Proposals {
		if o.Proposal == names.Reference {
			var found api.Messages
			if err := s.ask(ctx, api.SessionMessages.Verb, api.ListMessages{Session: view.Session, Since: o.Sequence, Limit: 1}, &found); err != nil {
				return nil, err
			}
			return agreement.OfferIn(found.Messages)
		}
	}
	return nil, nil
}

// ask calls a verb as the agent.
func (s speech) ask(ctx context.Context, verb api.Verb, request, reply any) error {
	return calls.As(ctx, s.o.Broker, s.as, verb, request, reply)
}
