package oapgateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
)

var negotiationMode = modes.Binding.Name

// A negotiation is a session as OAP shows it.
type negotiation struct {
	ID        string           `json:"negotiation_id"`
	State     string           `json:"state"`
	Parties   []agreement.DID  `json:"parties,omitzero"`
	Round     int64            `json:"round,omitzero"`
	MaxRounds int64            `json:"max_rounds,omitzero"`
	Proposal  string           `json:"proposal_id,omitzero"` // that can be answered, or was accepted
	Expires   string           `json:"valid_until,omitzero"`
	Agreement agreement.ID     `json:"agreement_id,omitzero"`
	Hash      agreement.Digest `json:"agreement_hash,omitzero"`
	CCC       jsontext.Value   `json:"ccc,omitzero"`
	Regulated jsontext.Value   `json:"regulated_obligations,omitzero"`
	Publish   jsontext.Value   `json:"publish,omitzero"`  // what the public log is to show, to which whoever accepts consents
	Unsigned  []agreement.DID  `json:"unsigned,omitzero"` // who has not signed the agreement yet
	Penalty   jsontext.Value   `json:"withdrawal_penalty_terms,omitzero"`
	History   []past           `json:"history,omitzero"`
	Next      string           `json:"next,omitzero"` // cursor of the next page of the history
}

// past is an act of a negotiation.
type past struct {
	Act      string         `json:"act"` // propose, accept, reject or withdraw
	From     agreement.DID  `json:"from"`
	At       string         `json:"at"`
	Proposal string         `json:"proposal_id,omitzero"`
	Status   string         `json:"status,omitzero"` // of a proposal
	Document jsontext.Value `json:"document"`        // as its party signed it; else the body of the act
}

func (v view) negotiation() negotiation {
	n := negotiation{
		ID: negotiationID(v.Session), State: v.part.Status, Round: v.part.Round, MaxRounds: v.part.MaxRounds,
		Agreement: v.part.Agreement, Hash: v.part.Hash, CCC: v.CCC, Regulated: v.Obligations,
	}
	for _, a := range v.part.Unsigned {
		n.Unsigned = append(n.Unsigned, v.Inherits().DIDOf(a))
	}
	n.Publish, n.Penalty = v.Publish, v.penalty()
	if n.Publish == nil {
		n.Publish = jsontext.Value(`"hash"`)
	}
	for _, p := range v.Participants {
		if p.Role == session.Inviter.String() || p.Role == session.Invitee.String() {
			n.Parties = append(n.Parties, v.Inherits().DIDOf(p.Agent))
		}
	}
	if v.part.Live != "" {
		n.Proposal = proposalID(v.part.Live)
		o, _ := v.find(v.part.Live)
		n.Expires = o.ValidUntil
	}
	return n
}

// penalty is the opening's terms of walking away, which are data.
func (v view) penalty() jsontext.Value {
	var terms struct {
		Policy struct {
			Penalty jsontext.Value `json:"withdrawalPenaltyTerms"`
		} `json:"policy"`
	}
	if json.Unmarshal(v.Invitation.Terms, &terms) != nil {
		return nil
	}
	return terms.Policy.Penalty
}

// maxHistory is how many entries one page is made of.
const maxHistory = 50

// state answers with a negotiation and a page of its history.
func (c *call) state() (int, any, error) {
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	q := api.ListMessages{Session: v.Session, Limit: maxHistory}
	if cursor := c.r.URL.Query().Get("cursor"); cursor != "" {
		if q.Since, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return 0, nil, bad("cursor is next of the page before")
		}
	}
	page, err := c.Messages(c.r.Context(), q)
	if err != nil {
		return 0, nil, err
	}
	n := v.negotiation()
	n.History = []past{}
	for _, entry := range page.Messages {
		m, stamp, err := read(entry)
		if err != nil {
			return 0, nil, err
		}
		if name, shown := actions[m.Performative]; shown && !v.opens(m) {
			n.History = append(n.History, v.past(name, m, stamp))
		}
	}
	if page.Next != nil {
		n.Next = strconv.FormatUint(*page.Next, 10)
	}
	return http.StatusOK, n, nil
}

var actions = map[performatives.Performative]string{
	performatives.Propose: "propose", performatives.Counter: "propose", performatives.Accept: "accept",
	performatives.Reject: "reject", performatives.Withdraw: "withdraw", performatives.Close: "withdraw",
}

// opens reports whether an act is the invitation or its acceptance, which OAP does not know.
func (v view) opens(m *performatives.Message) bool {
	return v.Invitation.Proposal != "" && (m.Body.ID(m.ID) == v.Invitation.Proposal || m.Body.Refers() == v.Invitation.Proposal)
}

func (v view) past(name string, m *performatives.Message, stamp performatives.Stamp) past {
	p := past{Act: name, From: v.Inherits().DIDOf(side(m, stamp)), At: stamp.Receipt.AcceptedAt, Document: m.RawBody}
	if signed := agreement.OAPIn(m.Context); len(signed) > 0 {
		p.Document = signed[0]
	}
	id := m.Body.Refers()
	if _, offers := m.Body.(performatives.Offering); offers {
		id = m.Body.ID(m.ID)
	}
	if o, has := v.find(id); has && name == "propose" {
		if p.Status = o.Status; v.State.Over() && p.Status == session.Open.String() { // it ended with the negotiation
			p.Status = v.part.Status
		}
	}
	if id != "" {
		p.Proposal = proposalID(id)
	}
	return p
}

// side is the party for whom an entry was sent.
func side(m *performatives.Message, stamp performatives.Stamp) performatives.Agent {
	if stamp.OnBehalfOf != "" {
		return stamp.OnBehalfOf
	}
	return m.Sender
}

// draft answers with the core of the agreement that a proposal would become: its canonical
// form has the agreement_hash, which both parties sign.
func (c *call) draft() (int, any, error) {
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	o, has := v.find(v.proposal(c.r.PathValue("proposal")))
	if !has {
		return 0, nil, session.Refuse(session.UnknownSession, "the negotiation has no such proposal")
	}
	m, err := c.entry(v.Session, o.Sequence)
	if err != nil {
		return 0, nil, err
	}
	offering, offers := m.Body.(performatives.Offering)
	binder, binds := m.Body.(performatives.Binder)
	if !offers || !binds {
		return 0, nil, session.NoSuchSession()
	}
	offer := agreement.Offer{
		Session: v.Session, Proposal: o.Proposal, Parties: []performatives.Agent{o.From, v.other(o.From)},
		Terms: offering.Offer().Terms, Binding: *binder.Binds(), Inherited: v.Inherits(),
	}
	offer.Salt, _ = agreement.ParseSalt(offer.AgreementSalt)
	if v.part.Status == accepted && v.part.Live == o.Proposal {
		var made agreement.Document // with the date that it has by now
		err := c.Call(c.r.Context(), api.AgreementGet.Verb, api.GetAgreement{Session: v.Session}, &made)
		offer.EffectiveFrom = made.EffectiveFrom
		if err != nil {
			return 0, nil, err
		}
	}
	d, err := agreement.Draft(offer)
	return http.StatusOK, draftReply{d.Core, d.EffectiveFrom, v.Publish}, err
}

// accepted is the state of a negotiation that has made an agreement.
const accepted = "accepted"

// A draftReply is the core that is to be signed, and beside it what is to be published but
// digests, which is not signed.
type draftReply struct {
	agreement.Core
	From    string         `json:"effective_from,omitzero"` // absent while the acceptance has yet to say when: nothing is to be signed
	Publish jsontext.Value `json:"publish,omitzero"`
}

// entry is one entry of the transcript.
func (c *call) entry(id performatives.SessionID, sequence uint64) (*performatives.Message, error) {
	page, err := c.Messages(c.r.Context(), api.ListMessages{Session: id, Since: sequence, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Messages) == 0 {
		return nil, session.NoSuchSession()
	}
	m, _, err := read(page.Messages[0])
	return m, err
}

func read(entry []byte) (*performatives.Message, performatives.Stamp, error) {
	m, stamp, _, err := performatives.ReadDelivered(entry)
	if err == nil {
		err = m.DecodeBody()
	}
	return m, stamp, err
}

// The ids of OAP are ours with a prefix.

func negotiationID(id performatives.SessionID) string { return agreement.OAPNegotiation + string(id) }

func sessionOf(id string) (performatives.SessionID, error) {
	s, err := performatives.ParseSessionID(strings.TrimPrefix(id, agreement.OAPNegotiation))
	if err != nil {
		return "", session.NoSuchSession()
	}
	return s, nil
}

func proposalID(id string) string {
	return agreement.OAPProposal + strings.TrimPrefix(id, agreement.OAPProposal)
}

// proposal is the id of a proposal as the session has it.
func (v view) proposal(id string) string {
	if _, has := v.find(id); has {
		return id
	}
	return strings.TrimPrefix(id, agreement.OAPProposal)
}
