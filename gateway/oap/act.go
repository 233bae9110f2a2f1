package oapgateway

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An act is what a request becomes.
type act struct {
	as           performatives.Agent
	session      performatives.SessionID
	performative performatives.Performative
	body         map[string]any
	document     jsontext.Value // as the party signed it; nil for none
	linked       bool           // the envelope carries its place in the transcript
}

// maxRaces is how often an act is sent while others come before it.
const maxRaces = 8

// submit signs an act with the hosted key of its principal, and sends it.
func (c *call) submit(a act) error {
	for range maxRaces {
		err := c.try(a)
		if !errors.Is(err, &session.Refusal{Code: session.ChainConflict}) {
			return err
		}
	}
	return session.Busy()
}

func (c *call) try(a act) error {
	signer, err := c.g.o.Custody.Signer(c.r.Context(), a.as)
	if err != nil {
		return err
	}
	draft := performatives.RawDraft{
		ID: performatives.MessageID(newID()), Session: a.session, Timestamp: c.g.o.Now(), Sender: a.as, Performative: a.performative.String(),
	}
	if draft.Body, err = json.Marshal(a.body, json.Deterministic(true)); err != nil {
		return err
	}
	if a.document != nil {
		if draft.Context, err = agreement.OAPContext(a.document); err != nil {
			return err
		}
	}
	if a.linked {
		var head api.SessionView
		if err := c.ask(api.SessionGet.Verb, api.GetSession{Session: a.session}, &head); err != nil {
			return err
		}
		draft.Link = &performatives.Link{Sequence: head.Head.Next.Sequence, PreviousHash: head.Head.Next.PreviousHash}
	}
	data, err := draft.Envelope(signer)
	if err != nil {
		return err
	}
	if len(data) > performatives.MaxEnvelope {
		return session.Refuse(session.TooLarge, "the proposal makes an envelope of %d bytes, which has at most %d: terms stand in it twice", len(data), performatives.MaxEnvelope)
	}
	_, err = c.g.o.Broker.SubmitAs(c.r.Context(), a.as, a.session, data)
	return err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// A view is a session as this gateway reads it.
type view struct {
	api.SessionView
	part part
}

// part is what binding/1 adds to the view.
type part struct {
	Status    string           `json:"status"`
	Round     int64            `json:"round"`
	MaxRounds int64            `json:"maxRounds"`
	Live      string           `json:"live"`
	Agreement agreement.ID     `json:"agreementId"`
	Hash      agreement.Digest `json:"agreementHash"`
}

// look reads the session that the path names, if it is a negotiation.
func (c *call) look() (v view, err error) {
	id, err := sessionOf(c.r.PathValue("id"))
	if err == nil {
		err = c.ask(api.SessionGet.Verb, api.GetSession{Session: id}, &v.SessionView)
	}
	if err == nil && v.Mode != negotiationMode {
		err = session.NoSuchSession()
	}
	if err == nil {
		err = json.Unmarshal(v.ModePart, &v.part)
	}
	return v, err
}

// other is the other party.
func (v view) other(self performatives.Agent) performatives.Agent {
	i := slices.IndexFunc(v.Participants, func(p api.PartyView) bool {
		return p.Agent != self && (p.Role == session.Inviter.String() || p.Role == session.Invitee.String())
	})
	if i < 0 {
		return ""
	}
	return v.Participants[i].Agent
}

// key is a party's own key.
func (v view) key(a performatives.Agent) performatives.Key {
	for _, p := range v.Participants {
		if p.Agent == a && p.DIDKey != "" {
			return p.DIDKey
		}
		if p.Agent == a {
			return p.Key
		}
	}
	return ""
}

// find finds a proposal of the session.
func (v view) find(id string) (o api.OfferView, has bool) {
	i := slices.IndexFunc(v.Proposals, func(o api.OfferView) bool { return o.Proposal == id })
	if i < 0 {
		return o, false
	}
	return v.Proposals[i], true
}
