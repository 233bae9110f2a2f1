package oapgateway

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// An act is what a request becomes.
type act struct {
	performative performatives.Performative
	body         map[string]any
	document     jsontext.Value // as the party signed it; nil for none
}

// say says an act for the caller, once for each Idempotency-Key.
func (c *call) say(id performatives.SessionID, a act) error {
	key, err := gateway.KeyIn(c.r.Header)
	if err != nil {
		return err
	}
	said := api.Say{Session: id, Key: key, Performative: a.performative.String()}
	if said.Body, err = json.Marshal(a.body, json.Deterministic(true)); err != nil {
		return err
	}
	if a.document != nil {
		if said.Context, err = agreement.OAPContext(a.document); err != nil {
			return err
		}
	}
	_, err = c.Say(c.r.Context(), said)
	return err
}

// A view is a session as this gateway reads it.
type view struct {
	api.SessionView
	part part
}

// part is what binding/1 adds to the view.
type part struct {
	Status    string                `json:"status"`
	Round     int64                 `json:"round"`
	MaxRounds int64                 `json:"maxRounds"`
	Live      string                `json:"live"`
	Agreement agreement.ID          `json:"agreementId"`
	Hash      agreement.Digest      `json:"agreementHash"`
	Unsigned  []performatives.Agent `json:"unsigned"`
}

// look reads the session that the path names, if it is a negotiation.
func (c *call) look() (view, error) {
	id, err := sessionOf(c.r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	return c.view(id)
}

func (c *call) view(id performatives.SessionID) (v view, err error) {
	if v.SessionView, err = c.View(c.r.Context(), id); err != nil {
		return v, err
	}
	if v.Mode != negotiationMode {
		return v, session.NoSuchSession()
	}
	return v, json.Unmarshal(v.ModePart, &v.part)
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
