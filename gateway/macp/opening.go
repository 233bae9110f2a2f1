package macpgateway

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// opening is the SessionStart that an invitation is.
func (h *history) opening(e api.Entry) (*pb.Envelope, error) {
	var body struct {
		Terms performatives.InvitationTerms `json:"terms"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return nil, err
	}
	own := ownOf(e)
	var r roster
	var err error
	if own != nil && own.GetMessageType() == start {
		r, err = readStart(own, h.named)
	}
	if by, _ := h.named(own.GetSender()); own == nil || err != nil || by != e.From || !r.is(e.From, body.Terms) {
		r = roster{start: &pb.SessionStartPayload{
			Intent: body.Terms.Purpose, ModeVersion: modeVersion, ConfigurationVersion: configDef, TtlMs: body.Terms.MaxDuration,
			PolicyVersion: policyVersion(body.Terms),
		}}
		for _, a := range append([]performatives.Agent{e.From}, body.Terms.Participants...) {
			r.parties = append(r.parties, a)
			r.start.Participants = append(r.start.Participants, h.g.nameOf(a))
		}
		own = h.envelope(e, start, r.start)
	} else {
		h.names[e.From] = own.GetSender()
	}
	h.start = r.start
	for i, a := range r.parties {
		h.names[a] = r.start.GetParticipants()[i]
	}
	h.shows(own, e)
	return own, nil
}

// named is the principal that MACP knew by a name when the session was started, or else knows now.
func (h *history) named(name string) (performatives.Agent, bool) {
	if a, was := h.roster[name]; was {
		return a, true
	}
	return h.g.named(name)
}

// rosterKey is where the names of a session's start are.
func rosterKey(id performatives.SessionID) string { return "roster." + string(id) }

// keepRoster keeps the names of a start that was accepted: those of tokens are gone with them.
func (g *Gateway) keepRoster(ctx context.Context, id performatives.SessionID, c caller, r roster) error {
	names := map[string]performatives.Agent{}
	for i, name := range append(slices.Clone(r.start.GetParticipants()), c.name) {
		a := c.Agent
		if i < len(r.parties) {
			a = r.parties[i]
		}
		if _, given := g.o.Sender(name); given {
			names[name] = a
		}
	}
	if len(names) == 0 {
		return nil
	}
	data, err := json.Marshal(names, json.Deterministic(true))
	if err != nil {
		return err
	}
	if _, err := g.o.Records.Create(ctx, rosterKey(id), data); errors.Is(err, store.ErrKeyExists) {
		return nil
	} else if err != nil {
		return err
	}
	return g.o.Records.Sync()
}

// readRoster reads them; there are none if all names are URIs.
func (g *Gateway) readRoster(ctx context.Context, id performatives.SessionID) (names map[string]performatives.Agent, err error) {
	found, err := g.o.Records.Get(ctx, rosterKey(id))
	if errors.Is(err, store.ErrNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return names, json.Unmarshal(found.Value, &names)
}

// is reports whether a roster is that of an invitation.
func (r roster) is(inviter performatives.Agent, terms performatives.InvitationTerms) bool {
	invited := map[performatives.Agent]bool{inviter: true}
	for _, a := range terms.Participants {
		invited[a] = true
	}
	named := map[performatives.Agent]bool{inviter: true}
	for _, a := range r.parties {
		if named[a] = true; !invited[a] {
			return false
		}
	}
	return len(named) == len(invited) && r.start.GetTtlMs() == terms.MaxDuration && subject(r.start.GetIntent(), modeURI) == terms.Purpose
}

func policyVersion(t performatives.InvitationTerms) string {
	var policy struct {
		Version string `json:"policyVersion"`
	}
	if json.Unmarshal(t.Policy, &policy) != nil {
		return ""
	}
	return policy.Version
}
