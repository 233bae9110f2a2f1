package api

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// ViewSession shows all of a session at a time of the broker's clock. One that is over
// stays as it was: nothing expires any more. ViewPage bounds what is sent.
func ViewSession(s *session.State, at time.Time) SessionView {
	if s.Phase.Over() && at.After(s.Updated) {
		at = s.Updated
	}
	v := SessionView{
		Session: s.ID, State: s.Phase, Created: Timestamp(s.Created), Closing: s.Closing,
		Participants: []PartyView{}, Proposals: []OfferView{}, Commitments: []OfferView{},
		Delegations: []GrantView{}, Deadlines: []DeadlineView{}, Head: s.ChainHead(),
		Concluded: s.Concluded(), Accepted: s.Accepted(),
	}
	v.Turns, _ = s.Turns()
	if s.Phase == session.Idle {
		return v
	}
	v.Mode, v.Purpose, v.Updated = s.Mode.Name, s.Agreed.Purpose, Timestamp(s.Updated)
	v.Invitation = viewOffer(s, s.Invitation(), at)
	for _, a := range s.Participants() {
		p, _ := s.Party(a)
		v.Participants = append(v.Participants, viewParty(s, p, at))
		for bound, _ := s.Bound(a); bound != nil; bound = bound.Else {
			v.Authorities = append(v.Authorities, viewBound(a, bound))
		}
	}
	for _, o := range s.Offers() {
		switch {
		case o.IsProposal(), o.IsAmendment():
			v.Proposals = append(v.Proposals, viewOffer(s, o, at))
		case o.IsCommitment():
			v.Commitments = append(v.Commitments, viewOffer(s, o, at))
		}
	}
	v.addExecution(s, at)
	for _, g := range s.Grants() {
		v.Delegations = append(v.Delegations, viewGrant(s, g, at))
	}
	if asked := s.NewestEscalations(); len(asked) > 0 {
		v.Escalation = ViewEscalation(cmp.Or(s.Escalation(), asked[len(asked)-1]))
	}
	for _, d := range s.Deadlines(at) {
		paused := d.Code != session.EscalationExpired && s.ClockStopped(at)
		v.Deadlines = append(v.Deadlines, DeadlineView{d.Code, Timestamp(d.At), d.Ends, d.Ref, paused})
	}
	pauses := s.Pauses()
	for _, p := range pauses[max(0, len(pauses)-mostPauses):] {
		view := PauseView{From: Timestamp(p.From)}
		if !p.Until.IsZero() {
			view.Until = Timestamp(p.Until)
		}
		v.Pauses = append(v.Pauses, view)
	}
	inherits := agreement.InheritedOf(s)
	v.CCC, v.Obligations, v.Publish = inherits.CCC, inherits.Obligations, agreement.AskedOf(s)
	if s.Mode.View != nil {
		v.ModePart = members(s.Mode.View(s, at))
	}
	return v
}

// mostPauses are those of a view.
const mostPauses = 20

// A ModeTurn is where the turns stand in a mode that counts them.
type ModeTurn struct {
	Number uint64              `json:"number"` // turns taken
	Next   performatives.Agent `json:"next"`   // who takes the next
}

// Turn tells where the turns stand, if the session's mode counts them.
func (v SessionView) Turn() (turn ModeTurn, counted bool) {
	var part struct {
		Turn *ModeTurn `json:"turn"`
	}
	if len(v.ModePart) == 0 || json.Unmarshal(v.ModePart, &part) != nil || part.Turn == nil {
		return turn, false
	}
	return *part.Turn, true
}

// Inherits is what the agreements of the session inherit of its parties.
func (v SessionView) Inherits() agreement.Inherited {
	c := agreement.Inherited{CCC: v.CCC, Obligations: v.Obligations, DIDs: map[performatives.Agent]agreement.DID{}}
	var part struct {
		IDs string `json:"ids"`
	}
	c.OAP = len(v.ModePart) > 0 && json.Unmarshal(v.ModePart, &part) == nil && part.IDs == agreement.OAPIDs
	for _, p := range v.Participants {
		if p.DID != "" {
			c.DIDs[p.Agent] = agreement.DID(p.DID)
		}
	}
	return c
}

// members writes what a mode adds. Modes are part of the program: one whose
// part is no JSON is a bug that its first test finds.
func members(part any) jsontext.Value {
	data, err := json.Marshal(part, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("the view of a mode cannot be written: %v", err))
	}
	return data
}

func viewParty(s *session.State, p session.Party, at time.Time) PartyView {
	v := PartyView{Agent: p.Agent, Role: p.Role.String(), Kind: p.Kind, Status: "joined", Authority: p.Authority, Key: p.Key, Custody: p.Custody, DIDKey: p.DIDKey, DID: p.DID, Conformance: p.Conformance}
	switch {
	case p.Role == session.Delegate:
		g := s.GrantsOf(p, at)[0]
		v.Status, v.Authority, v.OnBehalfOf = grantStatus(s, g, at), g.Authority.String(), g.Principal
	case p.Role == session.Standby:
		v.OnBehalfOf = p.StandsFor
	case p.Role == session.Invitee && !p.Answered:
		v.Status = "invited"
	}
	return v
}

func viewOffer(s *session.State, o *session.Offer, at time.Time) OfferView {
	v := OfferView{
		Proposal: o.ID, Status: o.StatusAt(s.Clock(at)).String(), From: o.Side, By: o.By, To: o.To,
		Type: o.Type, Subject: o.Subject, Schema: o.Schema, Terms: o.Terms, Supersedes: o.Supersedes,
		Pending: s.OpenFields(o), Sequence: o.Sequence, Truncated: o.Compact,
	}
	if o.IsCommitment() {
		v.Proposal, v.Commitment, v.Supersedes, v.Reference = "", o.ID, "", o.Supersedes
	}
	if o.IsAmendment() {
		v.Supersedes, v.Reference = "", o.Supersedes
	}
	if !o.Expires.IsZero() {
		v.ValidUntil = Timestamp(s.Wall(o.Expires, at))
	}
	if o.Acceptances() == 0 {
		return v
	}
	for _, a := range s.Participants() {
		if o.AcceptedBy(a) {
			v.AcceptedBy = append(v.AcceptedBy, a)
		}
	}
	return v
}

func viewGrant(s *session.State, g delegation.Grant, at time.Time) GrantView {
	v := GrantView{
		ID: g.ID, From: g.From, To: g.To, OnBehalfOf: g.Principal, Authority: g.Authority.String(), Scope: g.Scope,
		Status: grantStatus(s, g, at), Depth: g.Depth, Reference: g.Offer,
	}
	if !g.Until.IsZero() {
		v.ValidUntil = Timestamp(s.Wall(g.Until, at))
	}
	return v
}

func grantStatus(s *session.State, g delegation.Grant, at time.Time) string {
	return delegation.StatusAt(g, s.Clock(at), s.Grant).String()
}

// ViewEscalation shows an escalation.
func ViewEscalation(item *escalation.Item) *EscalationView {
	v := &EscalationView{
		ID: item.ID, By: item.By, OnBehalfOf: item.Principal, Organisation: item.Org,
		Reason: item.Body.Reason, Urgency: item.Body.Urgency, Context: item.Body.Context,
		SuggestedAction: item.Body.SuggestedAction, Sealed: item.Sealed, Reference: item.Body.ReferenceID, Dispute: item.Dispute,
		At: Timestamp(item.At), Deadline: Timestamp(item.Due), Status: "open", Amount: item.Amount, TermsHash: item.Terms,
	}
	for _, vote := range item.Votes {
		v.Votes = append(v.Votes, VoteView{vote.By, vote.Decision, vote.Comment, vote.Authority, vote.Sealed, Timestamp(vote.At)})
	}
	if !item.Open() {
		v.Status, v.DecidedBy, v.DecidedAt = item.End.How, item.End.By, Timestamp(item.End.At)
	}
	return v
}

// viewBound is what a ruling lets a side agree to.
func viewBound(side performatives.Agent, b *escalation.Bound) AuthorityView {
	v := AuthorityView{OnBehalfOf: side, Escalation: b.Escalation, RulingsAuthority: b.RulingsAuthority, Thread: b.Thread, Denied: b.Denied, Sealed: b.Sealed}
	if b.Only != nil {
		v.TermsHash = b.Only.Terms
	}
	return v
}

// closed is a sealed authority for who cannot open it.
func (a AuthorityView) closed() AuthorityView {
	return AuthorityView{OnBehalfOf: a.OnBehalfOf, Escalation: a.Escalation, Sealed: true, Denied: a.Denied}
}

// hide takes out of the view what is sealed and not to be opened.
func (v *SessionView) hide(s *session.State, opens Opens, unsealed Unsealed) {
	for i, a := range v.Authorities {
		if a.Sealed && !opens(a.OnBehalfOf.Organisation()) && !unsealedRulings(s, a.Escalation, unsealed) {
			v.Authorities[i] = a.closed()
		}
	}
	if v.Escalation != nil {
		v.Escalation.Hide(opens, unsealed)
	}
}

// unsealedRulings reports whether somebody may open all the rulings of which the authority of an escalation was made.
func unsealedRulings(s *session.State, id escalation.ID, unsealed Unsealed) (all bool) {
	s.Escalations(func(item *escalation.Item) {
		if item.ID == id {
			all = !slices.ContainsFunc(item.Votes, func(v escalation.Vote) bool {
				return v.Sealed.Has(performatives.SealAuthority) && !unsealed.has(id, v.By)
			})
		}
	})
	return all
}

// Hide takes out of the view what is sealed and not to be opened.
func (v *EscalationView) Hide(opens Opens, unsealed Unsealed) {
	if opens(v.Organisation) {
		return
	}
	if !unsealed.has(v.ID, v.By) {
		if v.Sealed.Has(performatives.SealContext) {
			v.Context = nil
		}
		if v.Sealed.Has(performatives.SealSuggested) {
			v.SuggestedAction = ""
		}
	}
	v.Votes = slices.Clone(v.Votes)
	for i := range v.Votes {
		vote := &v.Votes[i]
		if unsealed.has(v.ID, vote.By) {
			continue
		}
		if vote.Sealed.Has(performatives.SealAuthority) {
			vote.Authority = nil
		}
		if vote.Sealed.Has(performatives.SealComment) {
			vote.Comment = ""
		}
	}
}

// Summarise is the session in one row; who "you" is decides awaitingYou.
func Summarise(s *session.State, you performatives.Member, at time.Time) SessionSummary {
	row := SessionSummary{
		Session: s.ID, State: s.Phase, Mode: s.Mode.Name, Purpose: s.Agreed.Purpose, Inviter: s.Inviter(),
		Parties: s.Participants(), Created: Timestamp(s.Created), Updated: Timestamp(s.Updated),
		Messages: s.Next, Awaiting: s.Awaits(you, at),
		Agreed: len(s.Agreements()) > 0, Waiting: waiting(s, you, at),
	}
	if s.Phase.Over() {
		row.Closing = s.Closing
	}
	row.Turns, row.LastTurn = s.Turns()
	row.Amount = amountOf(s, at)
	return row
}

// Unread is what of the row a delegate sees who may not read the session, not yet or no more: of the deal the number of
// turns only.
func (r SessionSummary) Unread() SessionSummary {
	r.LastTurn, r.Amount, r.Agreed, r.Closing, r.Waiting = 0, nil, false, "", nil
	return r
}

// amountOf is the amount of the offer that was accepted last, else of the newest open one.
func amountOf(s *session.State, at time.Time) *escalation.Amount {
	var open *session.Offer
	for _, o := range slices.Backward(s.Offers()) {
		switch {
		case !o.IsProposal():
		case o.Status == session.Accepted:
			return s.AmountAtStake(o, nil)
		case open == nil && o.StatusAt(s.Clock(at)) == session.Open:
			open = o
		}
	}
	return s.AmountAtStake(open, nil)
}

// InState reports whether a state is the one that is asked for: any, an open one, one that is over, or
// the one of this name.
func InState(p session.Phase, asked string) bool {
	switch asked {
	case "":
		return true
	case OpenSessions:
		return !p.Over()
	case EndedSessions:
		return p.Over()
	}
	return p.String() == asked
}

// Timestamp is how replies write a time: RFC 3339 in UTC, to the millisecond, so that it sorts.
func Timestamp(t time.Time) string { return performatives.FormatTime(t) }
