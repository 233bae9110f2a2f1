package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/persist"
	"github.com/parley-asp/parley/performatives"
)

// A View is a session as session.Get shows it (PROTOCOL.md §9). Lists stand in
// the order of the transcript; times are the broker's, RFC 3339.
type View struct {
	Session      performatives.SessionID `json:"sessionId"`
	State        Phase                   `json:"state"`
	Mode         string                  `json:"mode"`
	Purpose      string                  `json:"purpose,omitzero"`
	Created      string                  `json:"createdAt"`
	Updated      string                  `json:"updatedAt"`
	Closing      string                  `json:"reason,omitzero"` // why it is over
	Participants []PartyView             `json:"participants"`
	Invitation   OfferView               `json:"invitation"`
	Proposals    []OfferView             `json:"proposals"`
	Commitments  []OfferView             `json:"commitments"`
	Delegations  []GrantView             `json:"delegations"`
	Escalation   *EscalationView         `json:"escalation,omitzero"`  // the one that pauses the session, else the newest
	Authorities  []AuthorityView         `json:"authorities,omitzero"` // what rulings let each side agree to
	Head         HeadView                `json:"head"`
	Deadlines    []DeadlineView          `json:"deadlines"`

	Status     string `json:"status,omitzero"`     // bilateral/1
	Outcome    any    `json:"outcome,omitzero"`    // bilateral/1, at the end
	Turn       any    `json:"turn,omitzero"`       // bilateral/1
	Projection any    `json:"projection,omitzero"` // convergent/1
}

// A HeadView is where the transcript stands, and the link of the next entry
// for a sender who makes its own.
type HeadView struct {
	Sequence *uint64            `json:"sequenceNumber,omitzero"` // of the last entry; absent before the first
	Hash     performatives.Hash `json:"hash"`
	Next     NextView           `json:"next"`
}

// A NextView is what the next entry's sequenceNumber and previousHash must be.
type NextView struct {
	Sequence     uint64             `json:"sequenceNumber"`
	PreviousHash performatives.Hash `json:"previousHash"`
}

// A PartyView is one party.
type PartyView struct {
	Agent      performatives.Agent `json:"agentId"`
	Role       string              `json:"role"` // inviter, invitee, delegate or approver
	Kind       string              `json:"kind"`
	Status     string              `json:"status"` // joined or invited; of a delegate: offered, active, declined, withdrawn or expired
	Authority  string              `json:"authority"`
	OnBehalfOf performatives.Agent `json:"onBehalfOf,omitzero"`
	Key        performatives.Key   `json:"key,omitzero"`
}

// An OfferView is an invitation, a proposal or a commitment.
type OfferView struct {
	Proposal   string                `json:"proposalId,omitzero"`
	Commitment string                `json:"commitmentId,omitzero"`
	Status     string                `json:"status"` // open, accepted, rejected, countered, withdrawn or expired
	From       performatives.Agent   `json:"from"`   // the principal whose offer it is
	By         performatives.Agent   `json:"by"`     // who sent it
	To         performatives.Agent   `json:"to,omitzero"`
	Type       string                `json:"type,omitzero"`
	Subject    string                `json:"subject,omitzero"`
	Schema     string                `json:"schema,omitzero"`
	Terms      jsontext.Value        `json:"terms,omitzero"`
	ValidUntil string                `json:"validUntil,omitzero"`
	Supersedes string                `json:"supersedes,omitzero"`
	Reference  string                `json:"referenceId,omitzero"` // of a commitment: the proposal it carries out
	AcceptedBy []performatives.Agent `json:"acceptedBy,omitzero"`
	Pending    []string              `json:"openFields,omitzero"` // asked about and not answered
	Sequence   uint64                `json:"sequenceNumber"`
}

// A GrantView is one delegation.
type GrantView struct {
	ID         delegation.ID       `json:"delegationId"`
	From       performatives.Agent `json:"from"`
	To         performatives.Agent `json:"targetAgent"`
	OnBehalfOf performatives.Agent `json:"onBehalfOf"`
	Authority  string              `json:"authority"`
	Scope      string              `json:"scope"`
	Status     string              `json:"status"`
	Depth      int                 `json:"depth"`
	Reference  string              `json:"referenceId,omitzero"`
	ValidUntil string              `json:"validUntil,omitzero"`
}

// An EscalationView is one escalation.
type EscalationView struct {
	ID              escalation.ID              `json:"escalationId"`
	By              performatives.Agent        `json:"by"`
	OnBehalfOf      performatives.Agent        `json:"onBehalfOf"`
	Organisation    performatives.Organisation `json:"organisation"`
	Reason          string                     `json:"reason"`
	Urgency         string                     `json:"urgency"`
	Context         jsontext.Value             `json:"context"`
	SuggestedAction string                     `json:"suggestedAction,omitzero"`
	Reference       string                     `json:"referenceId,omitzero"`
	At              string                     `json:"at"`
	Deadline        string                     `json:"deadline"`
	Amount          *escalation.Amount         `json:"amount,omitzero"` // at stake, where one can be seen
	Votes           []VoteView                 `json:"votes,omitzero"`  // rulings so far, the one that ended it included
	Status          string                     `json:"status"`          // open, approved, denied, modified, guidance, closed or expired
	DecidedBy       performatives.Agent        `json:"decidedBy,omitzero"`
	DecidedAt       string                     `json:"decidedAt,omitzero"`
}

// A DeadlineView is one deadline in force.
type DeadlineView struct {
	Code string `json:"code"`
	At   string `json:"at"`
	Ends bool   `json:"endsSession"`
	Ref  string `json:"referenceId,omitzero"`
	// Paused says that a human is deciding: the deadline moves on as that takes time.
	Paused bool `json:"paused,omitzero"`
}

// HeadView is where the transcript stands.
func (s *State) HeadView() HeadView {
	v := HeadView{Hash: s.Head, Next: NextView{s.Next, s.Head}}
	if s.Next > 0 {
		last := s.Next - 1
		v.Sequence = &last
	}
	return v
}

// ViewAt shows the session at a time of the broker's clock. One that is over
// stays as it was: nothing expires any more.
func (s *State) ViewAt(at time.Time) View {
	if s.Phase.Over() && at.After(s.Updated) {
		at = s.Updated
	}
	v := View{
		Session: s.ID, State: s.Phase, Created: stamp(s.Created), Closing: s.Closing,
		Participants: []PartyView{}, Proposals: []OfferView{}, Commitments: []OfferView{},
		Delegations: []GrantView{}, Deadlines: []DeadlineView{}, Head: s.HeadView(),
	}
	if s.Phase == Idle {
		return v
	}
	v.Mode, v.Purpose, v.Updated = s.Mode.Name, s.Agreed.Purpose, stamp(s.Updated)
	v.Invitation = s.offerView(s.invitation, at)
	for _, a := range s.roll {
		p, _ := s.parties.Get(a)
		v.Participants = append(v.Participants, s.partyView(p, at))
	}
	for _, o := range s.allOffers() {
		switch {
		case o.IsProposal():
			v.Proposals = append(v.Proposals, s.offerView(o, at))
		case o.IsCommitment():
			v.Commitments = append(v.Commitments, s.offerView(o, at))
		}
	}
	for _, id := range s.grantOrder {
		v.Delegations = append(v.Delegations, s.grantView(id, at))
	}
	v.Escalation = s.escalationView()
	v.Authorities = s.authoritiesView()
	for _, d := range s.Deadlines(at) {
		paused := s.open != nil && d.Code != EscalationExpired && s.bankedAt(at) < s.mostPaused()
		v.Deadlines = append(v.Deadlines, DeadlineView{d.Code, stamp(d.At), d.Ends, d.Ref, paused})
	}
	if s.Mode.View != nil {
		s.Mode.View(s, at, &v)
	}
	return v
}

// allOffers are the offers in the order in which they came: no entry makes two.
func (s *State) allOffers() []*Offer {
	all := make([]*Offer, 0, s.live.Len()+s.past.Len())
	for _, some := range []persist.Table[string, *Offer]{s.past, s.live} {
		for _, o := range some.All() {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *Offer) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

func (s *State) partyView(p Party, at time.Time) PartyView {
	v := PartyView{Agent: p.Agent, Role: p.Role.String(), Kind: p.Kind, Status: "joined", Authority: p.Authority, Key: p.Key}
	switch {
	case p.Role == Delegate:
		g := s.grantView(p.Grant, at)
		v.Status, v.OnBehalfOf = g.Status, g.OnBehalfOf
	case p.Role == Invitee && !p.Answered:
		v.Status = "invited"
	}
	return v
}

func (s *State) offerView(o *Offer, at time.Time) OfferView {
	v := OfferView{
		Proposal: o.ID, Status: o.StatusAt(s.clock(at)).String(), From: o.Side, By: o.By, To: o.To,
		Type: o.Type, Subject: o.Subject, Schema: o.Schema, Terms: o.Terms, Supersedes: o.Supersedes,
		Pending: s.pendingFields(o), Sequence: o.Sequence,
	}
	if o.Kind == aCommitment {
		v.Proposal, v.Commitment, v.Supersedes, v.Reference = "", o.ID, "", o.Supersedes
	}
	if !o.Expires.IsZero() {
		v.ValidUntil = stamp(s.wall(o.Expires, at))
	}
	for _, a := range s.roll {
		if _, yes := o.acceptedBy.Get(a); yes {
			v.AcceptedBy = append(v.AcceptedBy, a)
		}
	}
	return v
}

func (s *State) grantView(id delegation.ID, at time.Time) GrantView {
	g, _ := s.grants.Get(id)
	v := GrantView{
		ID: g.ID, From: g.From, To: g.To, OnBehalfOf: g.Principal, Authority: g.Authority.String(), Scope: g.Scope,
		Status: delegation.StatusAt(g, s.clock(at), s.grants.Get).String(), Depth: g.Depth, Reference: g.Line,
	}
	if !g.Until.IsZero() {
		v.ValidUntil = stamp(s.wall(g.Until, at))
	}
	return v
}

// escalationView shows the open escalation, else the newest.
func (s *State) escalationView() *EscalationView {
	item := s.open
	if item == nil {
		item = s.newest
	}
	if item == nil {
		return nil
	}
	return ViewItem(item)
}

// ViewItem shows an escalation.
func ViewItem(item *escalation.Item) *EscalationView {
	v := &EscalationView{
		ID: item.ID, By: item.By, OnBehalfOf: item.Principal, Organisation: item.Org,
		Reason: item.Body.Reason, Urgency: item.Body.Urgency, Context: item.Body.Context,
		SuggestedAction: item.Body.SuggestedAction, Reference: item.Body.ReferenceID,
		At: stamp(item.At), Deadline: stamp(item.Due), Status: "open", Amount: item.Amount,
	}
	for _, vote := range item.Votes {
		v.Votes = append(v.Votes, VoteView{vote.By, vote.Decision, vote.Comment, vote.Authority, stamp(vote.At)})
	}
	if !item.Open() {
		v.Status, v.DecidedBy, v.DecidedAt = item.End.How, item.End.By, stamp(item.End.At)
	}
	return v
}

// Summary is one line of session.list.
type Summary struct {
	Session  performatives.SessionID `json:"sessionId"`
	State    Phase                   `json:"state"`
	Mode     string                  `json:"mode"`
	Purpose  string                  `json:"purpose,omitzero"`
	Inviter  performatives.Agent     `json:"inviter"`
	Parties  []performatives.Agent   `json:"participants"`
	Created  string                  `json:"createdAt"`
	Updated  string                  `json:"updatedAt"`
	Messages uint64                  `json:"messages"`
	Awaiting bool                    `json:"awaitingYou"`
}

// SummaryFor is the session in one line; who "you" is decides awaitingYou.
func (s *State) SummaryFor(you performatives.Agent, at time.Time) Summary {
	return Summary{
		Session: s.ID, State: s.Phase, Mode: s.Mode.Name, Purpose: s.Agreed.Purpose, Inviter: s.inviter,
		Parties: s.roll, Created: stamp(s.Created), Updated: stamp(s.Updated),
		Messages: s.Next, Awaiting: s.Awaits(you, at),
	}
}

// Awaits tells whether the session waits for an answer of this party: an
// invitation, an open offer or commitment addressed to its side, a question
// about its own offer, a delegation, or an escalation.
func (s *State) Awaits(you performatives.Agent, at time.Time) bool {
	p, ok := s.parties.Get(you)
	if !ok || s.Phase.Over() {
		return false
	}
	if s.Phase == Escalated {
		return s.open.Asks(p.Member, at)
	}
	side := you
	if p.Role == Delegate {
		g, _ := s.grants.Get(p.Grant)
		switch g.Status {
		case delegation.Offered:
			return true
		case delegation.Active:
			if g.Authority != delegation.Full {
				return false
			}
		default:
			return false
		}
		side = g.Principal
	}
	if p.Role == Approver {
		return false
	}
	if s.Mode.Awaits != nil && s.Phase >= Introduced {
		return s.Mode.Awaits(s, side, at)
	}
	return s.awaitsAnswer(side, at)
}

func (s *State) awaitsAnswer(side performatives.Agent, at time.Time) bool {
	now := s.clock(at)
	for _, o := range s.live.All() {
		if o.StatusAt(now) != Open {
			continue
		}
		asked := len(s.pendingFields(o)) > 0
		_, said := o.acceptedBy.Get(side)
		if o.Side == side && asked || o.Side != side && !asked && !said && (o.To == "" || o.To == side) {
			return true
		}
	}
	return false
}
