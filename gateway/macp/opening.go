package macpgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	own, named := ownOf(e), h.named(append([]performatives.Agent{e.From}, body.Terms.Participants...))
	var r roster
	var err error
	if own != nil && own.GetMessageType() == start {
		r, err = readStart(own, named)
	}
	if by, _ := named(own.GetSender()); own == nil || err != nil || by != e.From || !r.is(e.From, body.Terms) {
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

// named finds whom MACP knew by a name when the session was started, or else knows now.
func (h *history) named(parties []performatives.Agent) func(string) (performatives.Agent, bool) {
	known := map[string]performatives.Agent{}
	for _, a := range parties {
		known[digest(h.view.Session, string(a))] = a
	}
	return func(name string) (performatives.Agent, bool) {
		if of, was := h.roster[digest(h.view.Session, name)]; was {
			a, is := known[of]
			return a, is
		}
		return h.g.named(name)
	}
}

// digest is what a roster has of a name: once a session is erased, nobody is named in it.
func digest(id performatives.SessionID, name string) string {
	sum := sha256.Sum256([]byte(string(id) + "\n" + name))
	return hex.EncodeToString(sum[:])
}

// rosterKey is where the names of a session's start are.
func rosterKey(id performatives.SessionID) string { return "roster." + string(id) }

// keepRoster keeps the names of a start that was accepted: those of tokens are gone with them.
func (g *Gateway) keepRoster(ctx context.Context, id performatives.SessionID, c caller, r roster) error {
	names := map[string]string{}
	for i, name := range append(slices.Clone(r.start.GetParticipants()), c.name) {
		a := c.Agent
		if i < len(r.parties) {
			a = r.parties[i]
		}
		if _, given := g.o.Sender(name); given {
			names[digest(id, name)] = digest(id, string(a))
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
func (g *Gateway) readRoster(ctx context.Context, id performatives.SessionID) (names map[string]string, err error) {
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
