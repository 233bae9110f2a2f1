package macpgateway

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
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
		r, err = h.g.readStart(own)
	}
	if own == nil || err != nil || !r.is(e.From, body.Terms) {
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
	own.Sender, own.SessionId = h.nameOf(e), h.name
	return own, nil
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
