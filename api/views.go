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

// A SessionView is the reply of session.get (PROTOCOL.md §9). Lists are in the
// order of the transcript; times are the broker's, in RFC 3339. Asked for a part, it
// has one list only, a page of it.
type SessionView struct {
	Session      performatives.SessionID `json:"sessionId"`
	State        session.Phase           `json:"state"`
	Mode         string                  `json:"mode"`
	Purpose      string                  `json:"purpose,omitzero"`
	Created      string                  `json:"createdAt"`
	Updated      string                  `json:"updatedAt"`
	Closing      string                  `json:"reason,omitzero"` // why it is over
	Participants []PartyView             `json:"participants,omitzero"`
	Invitation   OfferView               `json:"invitation,omitzero"`
	Proposals    []OfferView             `json:"proposals,omitzero"`
	Commitments  []OfferView             `json:"commitments,omitzero"`
	Delegations  []GrantView             `json:"delegations,omitzero"`
	Escalation   *EscalationView         `json:"escalation,omitzero"`  // the one that pauses the session, else the newest
	Authorities  []AuthorityView         `json:"authorities,omitzero"` // what rulings let each side agree to
	Head         session.ChainHead       `json:"head"`
	Concluded    []uint64                `json:"concluded,omitzero"` // entries after which something had been accepted, no offer was open, and nothing was due or disputed, while the session went on; at most 1000
	Turns        uint64                  `json:"turns,omitzero"`     // that were taken: offers, and answers to proposals and to questions
	Accepted     uint64                  `json:"accepted,omitzero"`  // the entry that accepted a proposal or a commitment last
	Deadlines    []DeadlineView          `json:"deadlines,omitzero"`
	Pauses       []PauseView             `json:"pauses,omitzero"`      // the newest times in which humans decided
	Owed         []ObligationView        `json:"obligations,omitzero"` // of the commitments that are carried out
	Disputes     []DisputeView           `json:"disputes,omitzero"`
	Arbiter      performatives.Agent     `json:"arbiter,omitzero"` // who decides disputes
	Leaving      []performatives.Agent   `json:"leaving,omitzero"` // parties who said CLOSE while something is due

	Truncated bool           `json:"truncated,omitzero"` // something is left out, or cut
	Omitted   map[string]int `json:"omitted,omitzero"`   // how many are left out of which part
	Next      string         `json:"next,omitzero"`      // of a part: cursor of the next page; absent on the last

	CCC         jsontext.Value `json:"ccc,omitzero"`                  // what the session inherits of the parties' contexts: its regulatory_classification
	Publish     jsontext.Value `json:"publish,omitzero"`              // terms of an agreement that the public log is to show, to which whoever accepts consents: terms, or a list
	Obligations jsontext.Value `json:"regulatedObligations,omitzero"` // of the parties that are regulated, where others are not

	ModePart jsontext.Value `json:",embed" jsonschema:"-"` // the members that the mode adds (PROTOCOL.md §8), an object; nil for none
}

// A PartyView is one party.
type PartyView struct {
	Agent       performatives.Agent `json:"agentId"`
	Role        string              `json:"role"` // inviter, invitee, delegate, standby, approver or arbiter
	Kind        string              `json:"kind"`
	Status      string              `json:"status"` // joined or invited; of a delegate: offered, active, declined, withdrawn or expired
	Authority   string              `json:"authority"`
	OnBehalfOf  performatives.Agent `json:"onBehalfOf,omitzero"`
	Key         performatives.Key   `json:"key,omitzero"`
	Custody     string              `json:"custody,omitzero"`          // hosted: the installation holds the key
	DIDKey      performatives.Key   `json:"didKey,omitzero"`           // the party's own key, where key is hosted
	DID         string              `json:"did,omitzero"`              // that it registered instead of that of its host
	Conformance string              `json:"conformanceLevel,omitzero"` // minimal: it takes INFORM, QUERY and CLOSE only
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
	Truncated  bool                  `json:"truncated,omitzero"` // something in it is cut
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
	Truncated  bool                `json:"truncated,omitzero"` // something in it is cut
}

// An EscalationView is one escalation.
type EscalationView struct {
	ID              escalation.ID              `json:"escalationId"`
	By              performatives.Agent        `json:"by"`
	OnBehalfOf      performatives.Agent        `json:"onBehalfOf"`
	Organisation    performatives.Organisation `json:"organisation"`
	Reason          string                     `json:"reason"`
	Urgency         string                     `json:"urgency"`
	Context         jsontext.Value             `json:"context,omitzero"`
	SuggestedAction string                     `json:"suggestedAction,omitzero"`
	Sealed          performatives.Digests      `json:"sealed,omitzero"` // of what the other sides cannot read
	Reference       string                     `json:"referenceId,omitzero"`
	Dispute         string                     `json:"disputeId,omitzero"` // that humans answer by INFORM reply; the reason is "dispute"
	At              string                     `json:"at"`
	Deadline        string                     `json:"deadline"`
	Amount          *escalation.Amount         `json:"amount,omitzero"`    // at stake, where one can be seen
	TermsHash       performatives.Hash         `json:"termsHash,omitzero"` // of the terms at stake
	Votes           []VoteView                 `json:"votes,omitzero"`     // rulings so far, the one that ended it included
	Status          string                     `json:"status"`             // open, approved, denied, modified, guidance, closed or expired; of a dispute, how it was answered
	DecidedBy       performatives.Agent        `json:"decidedBy,omitzero"`
	DecidedAt       string                     `json:"decidedAt,omitzero"`
	Truncated       bool                       `json:"truncated,omitzero"` // something in it is cut
}

// A VoteView is one human's ruling.
type VoteView struct {
	By        performatives.Agent             `json:"by"`
	Decision  string                          `json:"decision"`
	Comment   string                          `json:"comment,omitzero"`
	Authority *performatives.RulingsAuthority `json:"authority,omitzero"` // as it counts
	Sealed    performatives.Digests           `json:"sealed,omitzero"`    // of what the other sides cannot read
	At        string                          `json:"at"`
}

// An AuthorityView is what a ruling lets a side agree to.
type AuthorityView struct {
	OnBehalfOf performatives.Agent `json:"onBehalfOf"`
	Escalation escalation.ID       `json:"escalationId"`
	performatives.RulingsAuthority
	Sealed    bool                `json:"sealed,omitzero"`    // the other sides cannot read it
	Thread    *escalation.Thread  `json:"thread,omitzero"`    // that it is narrowed to
	Denied    []escalation.Denial `json:"denied,omitzero"`    // since the last approval
	Truncated bool                `json:"truncated,omitzero"` // something in it is cut
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

// A PauseView is a time in which humans decided, and no deadline passed.
type PauseView struct {
	From  string `json:"from"`
	Until string `json:"until,omitzero"` // absent while it goes on
}

// A SessionSummary is one row of session.list.
type SessionSummary struct {
	Session  performatives.SessionID `json:"sessionId"`
	State    session.Phase           `json:"state"`
	Mode     string                  `json:"mode"`
	Purpose  string                  `json:"purpose,omitzero"`
	Inviter  performatives.Agent     `json:"inviter"`
	Parties  []performatives.Agent   `json:"participants"`
	Created  string                  `json:"createdAt"`
	Updated  string                  `json:"updatedAt"`
	Messages uint64                  `json:"messages"`
	Turns    uint64                  `json:"turns,omitzero"`    // that were taken: offers, and answers to proposals and to questions
	LastTurn uint64                  `json:"lastTurn,omitzero"` // the entry that took the newest
	Awaiting bool                    `json:"awaitingYou"`
	Closing  string                  `json:"reason,omitzero"`  // why it is over
	Agreed   bool                    `json:"agreed,omitzero"`  // there is an agreement
	Amount   *escalation.Amount      `json:"amount,omitzero"`  // of what was agreed, else of the newest open offer, where one can be seen
	Waiting  *Waiting                `json:"waiting,omitzero"` // for whom the session waits

	Truncated bool `json:"truncated,omitzero"` // long values are cut; session.get has more
}

// An Entry is what a reader who verifies nothing takes from an entry of a transcript.
// transcript.Read reads one that is to be verified.
type Entry struct {
	TurnEntry

	ID        performatives.MessageID
	Session   performatives.SessionID
	Timestamp time.Time // by the sender's clock
	Recipient jsontext.Value
	Context   []jsontext.Value
	Hash      performatives.Hash
	Receipt   performatives.Receipt
	Bytes     jsontext.Value // as delivered
}

// Entries are those of the page, with what the caller may open of them.
func (m *Messages) Entries() ([]Entry, error) {
	all := make([]Entry, len(m.Messages))
	for i, data := range m.Messages {
		var err error
		if all[i], err = ReadEntry(data, nil); err != nil {
			return nil, err
		}
		all[i].open(m.Sealed[all[i].ID])
	}
	return all, nil
}

func (e *Entry) open(parts performatives.SealedParts) {
	e.Body = performatives.Opened(performatives.Parse(e.Performative), e.Body, parts)
}

// ReadEntry reads an entry as session.messages and inbox.messages return it, with what opens it.
func ReadEntry(data jsontext.Value, parts performatives.SealedParts) (Entry, error) {
	var e struct {
		ID           performatives.MessageID `json:"messageId"`
		Session      performatives.SessionID `json:"sessionId"`
		Sequence     uint64                  `json:"sequenceNumber"`
		Timestamp    time.Time               `json:"timestamp"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient"`
		Sender       struct {
			Agent performatives.Agent `json:"agentId"`
		} `json:"sender"`
		Content struct {
			Body    jsontext.Value   `json:"body"`
			Context []jsontext.Value `json:"context"`
		} `json:"content"`
		Integrity struct {
			OnBehalfOf performatives.Agent   `json:"onBehalfOf"`
			Hash       performatives.Hash    `json:"hash"`
			Receipt    performatives.Receipt `json:"receipt"`
		} `json:"integrity"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("an entry of a transcript cannot be read: %w", err)
	}
	entry := Entry{
		TurnEntry: TurnEntry{
			Sequence: e.Sequence, From: e.Sender.Agent, OnBehalfOf: e.Integrity.OnBehalfOf, Performative: e.Performative,
			Body: e.Content.Body, At: e.Integrity.Receipt.AcceptedAt,
		},
		ID: e.ID, Session: e.Session, Timestamp: e.Timestamp, Recipient: e.Recipient, Context: e.Content.Context,
		Hash: e.Integrity.Hash, Receipt: e.Integrity.Receipt, Bytes: data,
	}
	entry.open(parts)
	return entry, nil
}

// GetAgreement is the request of agreement.get. A session without an id of an agreement
// stands for its newest one.
type GetAgreement struct {
	Agreement agreement.ID            `json:"agreementId,omitzero"`
	Session   performatives.SessionID `json:"sessionId,omitzero"`
}

// ListAgreements is the request of agreement.list: those of the caller's sessions, the
// newest session first, or of one session.
type ListAgreements struct {
	Session performatives.SessionID `json:"sessionId,omitzero"`
	Limit   int                     `json:"limit,omitzero"`
	Cursor  string                  `json:"cursor,omitzero"`
}

// Agreements is a page of agreement.list.
type Agreements struct {
	Agreements []AgreementRow `json:"agreements"`
	Next       string         `json:"next,omitzero"`
}

// An AgreementRow is an agreement in a list.
type AgreementRow struct {
	Agreement      agreement.ID            `json:"agreementId"`
	Session        performatives.SessionID `json:"sessionId"`
	Proposal       string                  `json:"proposalId,omitzero"`
	Commitment     string                  `json:"commitmentId,omitzero"` // that made it
	Subject        string                  `json:"subject,omitzero"`      // of the offer, else the session's purpose
	Amount         *escalation.Amount      `json:"amount,omitzero"`       // the highest that the terms name where amounts usually are
	Parties        []agreement.DID         `json:"parties"`               // who made the offer comes first
	Category       string                  `json:"category,omitzero"`
	EffectiveFrom  string                  `json:"effectiveFrom"`
	EffectiveUntil string                  `json:"effectiveUntil,omitzero"`
	Hash           agreement.Digest        `json:"agreementHash"`
	AcceptedAt     string                  `json:"acceptedAt"`
	Sequence       uint64                  `json:"sequenceNumber"` // the entry that made it
}

// ViewAgreement is the row of an agreement of a session, made of its document.
func ViewAgreement(s *session.State, a session.Agreement, d agreement.Document, acceptedAt string) AgreementRow {
	row := AgreementRow{
		Agreement: d.ID, Session: d.Negotiation.Session(), Proposal: a.Proposal, Commitment: a.Commitment, Subject: s.Agreed.Purpose, Parties: d.Parties, Category: d.Category,
		EffectiveFrom: d.EffectiveFrom, EffectiveUntil: d.EffectiveUntil, Hash: d.Hash, AcceptedAt: acceptedAt, Sequence: a.Made(),
	}
	if o, has := s.Offer(a.Proposal); has && o.Subject != "" {
		row.Subject = o.Subject
	}
	if terms, err := json.Marshal(map[string]any{"terms": d.Terms}); err == nil {
		if found, _ := escalation.Amounts(terms, nil, false); len(found) > 0 {
			highest := slices.MaxFunc(found, func(a, b escalation.Amount) int { return cmp.Compare(a.Value, b.Value) })
			row.Amount = &highest
		}
	}
	return row
}
