package api

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Whose an item is, for ListEscalations.Claimed.
const (
	ClaimedByMe     = "me"
	ClaimedByNobody = "nobody"
	ClaimedByOthers = "others"
)

// ListEscalations is the request of escalation.list.
type ListEscalations struct {
	Status       string                     `json:"status,omitzero"`       // open (default), resolved or all
	Urgency      string                     `json:"urgency,omitzero"`      // only this one
	Claimed      string                     `json:"claimed,omitzero"`      // me, nobody or others
	Organisation performatives.Organisation `json:"organisation,omitzero"` // for operators, who see all
	Session      performatives.SessionID    `json:"sessionId,omitzero"`
	Search       string                     `json:"search,omitzero"`       // words, all of which are in what it is about, between whom, or why
	Counterparty performatives.Organisation `json:"counterparty,omitzero"` // only with somebody of this one
	// Of those that have ended: how, by whose decision or approval, and when, from
	// DecidedFrom until before DecidedUntil.
	Outcome      string              `json:"outcome,omitzero"` // approved, modified, denied, guidance, expired or closed
	DecidedBy    performatives.Agent `json:"decidedBy,omitzero"`
	DecidedFrom  string              `json:"decidedFrom,omitzero"`
	DecidedUntil string              `json:"decidedUntil,omitzero"`
	Sort         string              `json:"sort,omitzero"`  // due (default), newest or amount
	Limit        int                 `json:"limit,omitzero"` // 1–1000, by default 100
	Cursor       string              `json:"cursor,omitzero"`
}

// The orders of escalation.list: by when an answer is due, and by when they ended; by
// when they were escalated, newest first; by the amount at stake, largest first.
const (
	SortDue    = "due"
	SortNewest = "newest"
	SortAmount = "amount"
)

// Escalations is a page of escalation.list: open ones by when an answer is due,
// soonest first; others after them, newest first. Sort says otherwise.
type Escalations struct {
	Escalations []EscalationItem `json:"escalations"`
	Counts      EscalationCounts `json:"counts,omitzero"` // for the humans of an organisation
	Next        string           `json:"next,omitzero"`
	Now         string           `json:"now,omitzero"` // the broker's clock, which all times are of
}

// EscalationCounts are of all the open items that the caller may see, whatever
// was asked for.
type EscalationCounts struct {
	Open      int            `json:"open"`
	Urgency   map[string]int `json:"urgency"`
	DueSoon   int            `json:"dueSoon"` // within 15 minutes
	Mine      int            `json:"mine"`    // claimed by, or assigned to, the caller
	Unclaimed int            `json:"unclaimed"`
}

// An EscalationItem is one item of the escalation inbox, as it also stands on
// its asp.escalation subject. A list leaves out what only escalation.get has.
type EscalationItem struct {
	EscalationView
	Session        performatives.SessionID `json:"sessionId"`
	Purpose        string                  `json:"purpose,omitzero"`
	Proposal       *OfferView              `json:"proposal,omitzero"`       // the one at stake
	Previous       *OfferView              `json:"previous,omitzero"`       // the offer that it countered
	Counterparties []performatives.Agent   `json:"counterparties,omitzero"` // of the other sides; what they wrote is their word
	Head           *session.ChainHead      `json:"head,omitzero"`           // of the transcript
	CCC            jsontext.Value          `json:"ccc,omitzero"`            // the confidentiality that the session inherits
	Arbiter        performatives.Agent     `json:"arbiter,omitzero"`        // of the session's disputes
	Publish        jsontext.Value          `json:"publish,omitzero"`        // terms of an agreement that the public log is to show, to which whoever accepts consents

	// The rest is for the humans of the organisation, its auditors, and operators.
	Due   string `json:"due,omitzero"` // when an answer is due from who is asked now; deadline is when all time is over
	Route *Route `json:"route,omitzero"`
	Case  Case   `json:"case,omitzero"`

	// Delegates are the organisation's humans who hold a delegation in the session, and may not decide.
	Delegates []performatives.Agent `json:"delegates,omitzero"`

	// Unsealed are the principals whose sealed parts the arbiter may read.
	Unsealed []performatives.Agent `json:"unsealed,omitzero"`

	// Revision and ViewHash name what the human sees. An INFORM resolution that repeats them is refused
	// (409) if the item has changed since.
	Revision uint64             `json:"revision,omitzero"`
	ViewHash performatives.Hash `json:"shown,omitzero"`

	You *You `json:"you,omitzero"` // what the caller may do

	// Of escalation.get only:
	Approvers    []Approver       `json:"approvers,omitzero"`
	Changes      []Change         `json:"changes,omitzero"`      // the terms at stake, against Previous where there is one
	Labels       map[string]Label `json:"labels,omitzero"`       // what the terms schema calls a path, such as terms.price
	TermsSchema  jsontext.Value   `json:"termsSchema,omitzero"`  // of the proposal at stake, where it names one
	IfUnanswered *IfUnanswered    `json:"ifUnanswered,omitzero"` // absent once it is over
	Comments     []CaseAction     `json:"comments,omitzero"`     // of colleagues, oldest first; never in the transcript
	Transcript   []jsontext.Value `json:"transcript,omitzero"`
	// Opens are what opens sealed members of the transcript's envelopes, for the organisation whose they are.
	Opens   map[performatives.MessageID]performatives.SealedParts `json:"opens,omitzero"`
	Next    *uint64                                               `json:"next,omitzero"`    // cursor of the next page of the part, by default of the transcript
	Omitted map[string]int                                        `json:"omitted,omitzero"` // how many are left out of which other part
}

// AnswerDue is when an answer is due: from who is asked now, or else at all.
func (e *EscalationItem) AnswerDue() string { return cmp.Or(e.Due, e.Deadline) }

// Exactly completes the authority of an approval of what was shown. One that sets no bounds allows exactly
// the terms at stake, or, where it names none, the amount. Where no offer is at stake, for what a human confirms, and
// what the broker takes as it was shown, it stays as it is.
func (e *EscalationItem) Exactly(a *performatives.RulingsAuthority) *performatives.RulingsAuthority {
	if !a.Boundless() || e.Confirms() || e.TermsHash == "" && (e.Amount == nil || e.AsShown()) {
		return a
	}
	var exact performatives.RulingsAuthority
	if a != nil {
		exact = *a
	}
	if exact.TermsHash = e.TermsHash; e.TermsHash == "" {
		exact.MaxAmount, exact.Currency, exact.TermPath = &e.Amount.Value, e.Amount.Code(), e.Amount.Path
	}
	return &exact
}

// AsShown reports whether an approval that sets no bounds allows exactly what the escalation names: a commitment that names
// no proposal, or an amendment of one.
func (e *EscalationItem) AsShown() bool {
	return e.Reference != "" && e.TermsHash == "" && !e.Confirms() && e.Dispute == "" && e.Proposal != nil && e.Proposal.Terms != nil && (e.Proposal.Commitment != "" || e.Proposal.Reference != "")
}

// Confirms reports whether it asks to confirm what an agent has agreed to.
func (e *EscalationItem) Confirms() bool { return escalation.Confirms(e.Reason) }

// InForce is what the approvals so far allow together; nil is no bound.
func (e *EscalationItem) InForce() (all *performatives.RulingsAuthority, approved bool) {
	for _, v := range e.Votes {
		if !escalation.Approves(v.Decision) {
			continue
		}
		approved = true
		if both, err := escalation.Intersect(all, v.Authority); err == nil { // the broker refuses a vote that contradicts the others
			all = both
		}
	}
	return all, approved
}

// TermPaths are the paths of the terms at stake.
func (e *EscalationItem) TermPaths() (paths []string) {
	changes := e.Changes
	if changes == nil && e.Proposal != nil {
		changes = Compare(e.Proposal.Terms, nil, nil)
	}
	for _, c := range changes {
		if c.After != nil {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// ReadEscalationItem reads an item as its subject has it. Up to the end of 2026 its case and
// its counterparties had other names.
func ReadEscalationItem(data []byte) (*EscalationItem, error) {
	var item struct {
		EscalationItem
		Desk   Case                  `json:"desk"`
		Theirs []performatives.Agent `json:"theirs"`
	}
	if err := json.Unmarshal(data, &item); err != nil {
		return nil, err
	}
	item.Case = cmp.Or(item.Case, item.Desk)
	if item.Counterparties == nil {
		item.Counterparties = item.Theirs
	}
	return &item.EscalationItem, nil
}

// A Case is what humans have done about an escalation, from its case log. None of it is in the
// transcript.
type Case struct {
	Claim    *Claim              `json:"claim,omitzero"`
	Assignee performatives.Agent `json:"assignee,omitzero"`
	Comments int                 `json:"comments,omitzero"`
	Views    int                 `json:"views,omitzero"`  // humans who have looked
	Actions  uint64              `json:"events,omitzero"` // actions so far, without views and notifications
}

// A Claim reserves an escalation for one human, until the lease is over.
type Claim = escalation.Claim

// A Route is who is asked, one level after the other.
type Route struct {
	Rule   string  `json:"rule,omitzero"` // the organisation's name for it
	Level  int     `json:"level"`         // index of the level whose turn came last; those before it may still decide
	Levels []Level `json:"levels"`
	// NonMonetary says that humans with a ceiling may approve exactly the terms that are shown, which name
	// no amount: allow is one of them, two is two.
	NonMonetary string `json:"nonMonetary,omitzero"`
	// ReasonToDeny says that a denial needs a comment.
	ReasonToDeny bool     `json:"reasonToDeny,omitzero"`
	Reasons      []string `json:"reasons,omitzero"` // to deny, offered to humans
}

// A Level is one of them.
type Level struct {
	Name      string                `json:"name,omitzero"`
	Approvers []performatives.Agent `json:"approvers,omitzero"` // none is every human of the organisation who may decide
	Quorum    int                   `json:"quorum"`
	Approved  int                   `json:"approved"`
	Due       string                `json:"due"`
	RemindAt  string                `json:"remindAt,omitzero"`
}

// You is what the caller may do with an item.
type You struct {
	Decide bool                  `json:"decide"`          // approve, deny, modify, guide
	Why    string                `json:"why,omitzero"`    // not, or not without a bound
	Limits []performatives.Limit `json:"limits,omitzero"` // the caller's ceilings; none is no ceiling
	Voted  bool                  `json:"voted,omitzero"`
	Reads  bool                  `json:"reads,omitzero"` // only reads, as auditors do
}

// An Approver is somebody who is, or will be, asked.
type Approver struct {
	Agent   performatives.Agent   `json:"agentId"`
	Name    string                `json:"name,omitzero"`
	Level   int                   `json:"level"`  // index of the first that asks this human
	Turn    bool                  `json:"turn"`   // that level has been asked
	Enough  bool                  `json:"enough"` // the amount at stake is within the ceiling
	Limits  []performatives.Limit `json:"limits,omitzero"`
	Voted   bool                  `json:"voted,omitzero"`
	Trigger bool                  `json:"trigger,omitzero"` // sent the ESCALATE, so may not approve it
	Away    *Away                 `json:"away,omitzero"`    // who stands in now
}

// A Change is one term of the proposal at stake: what it was and what it is.
type Change struct {
	Path   string         `json:"path"` // dotted, such as terms.price
	Label  string         `json:"label,omitzero"`
	Kind   string         `json:"kind"` // same, changed, added or removed
	Before jsontext.Value `json:"before,omitzero"`
	After  jsontext.Value `json:"after,omitzero"`

	Truncated bool `json:"truncated,omitzero"` // something in it is cut; the part changes has it in full
}

// The kinds of Change.
const (
	Same    = "same"
	Changed = "changed"
	Added   = "added"
	Removed = "removed"
)

// A Label is what a terms schema says of one term.
type Label struct {
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
}

// IfUnanswered is what happens by itself, and when.
type IfUnanswered struct {
	At   string `json:"at"`
	Then string `json:"then"` // for a person to read
}

// EscalationRef is the request of escalation.release.
type EscalationRef struct {
	Escalation string `json:"escalationId"`
}

// GetEscalation is the request of escalation.get. With a part it asks for a page of it, in full.
type GetEscalation struct {
	Escalation string `json:"escalationId"`
	Part       string `json:"part,omitzero"`   // changes, comments or transcript
	Limit      int    `json:"limit,omitzero"`  // of a part: 1–1000, by default 100
	Cursor     uint64 `json:"cursor,omitzero"` // of a part: next of the page before; of transcript a sequenceNumber
}

// The parts of an item that are read page by page.
const (
	PartChanges    = "changes"
	PartComments   = "comments"
	PartTranscript = "transcript"
)

// ItemParts are the parts of an item that can be asked for.
func ItemParts() []string { return []string{PartChanges, PartComments, PartTranscript} }

// ReadCaseLog is the request of escalation.history.
type ReadCaseLog struct {
	Escalation string `json:"escalationId"`
	Cursor     uint64 `json:"cursor,omitzero"` // next of the page before
}

// ClaimEscalation is the request of escalation.claim. Who has claimed it may
// do so again, for longer.
type ClaimEscalation struct {
	Escalation string `json:"escalationId"`
	Lease      int64  `json:"leaseMs,omitzero"`  // by default 10 minutes, at most 8 hours
	TakeOver   bool   `json:"takeOver,omitzero"` // end the claim of a colleague, who is told
}

// AssignEscalation is the request of escalation.assign; to "" takes it back.
type AssignEscalation struct {
	Escalation string              `json:"escalationId"`
	To         performatives.Agent `json:"to,omitzero"`
}

// CommentEscalation is the request of escalation.comment. Comments are for
// colleagues: no agent, and nobody of another organisation, reads them.
type CommentEscalation struct {
	Escalation string `json:"escalationId"`
	Text       string `json:"text"`
}

// UnsealEscalation is the request of escalation.unseal: the arbiter of the session may read what one
// principal has sealed of the escalation.
type UnsealEscalation struct {
	Escalation string `json:"escalationId"`
	// Sealer is whose: the human whose ruling has sealed parts; by default who sent the ESCALATE.
	Sealer performatives.Agent `json:"sealer,omitzero"`
}

// TransferEscalation is the request of escalation.transfer: to a colleague, or
// to a later level of the route before its time.
type TransferEscalation struct {
	Escalation string              `json:"escalationId"`
	To         performatives.Agent `json:"to,omitzero"`
	Level      string              `json:"level,omitzero"` // name, or number from 1
	Reason     string              `json:"reason,omitzero"`
}

// A CaseLog is a page of escalation.history: everything that was done about an escalation, oldest first.
type CaseLog struct {
	Escalation string       `json:"escalationId"`
	Actions    []CaseAction `json:"events"`
	Next       *uint64      `json:"next,omitzero"` // cursor of the next page; absent on the last
}

// A CaseAction is one thing that was done about an escalation, by a human or by the clock.
type CaseAction = escalation.Action

// WatchEscalations is the request of escalation.watch, which answers when
// something has changed since the cursor, or after waitMs. Without since it
// answers at once with the cursor of now.
type WatchEscalations struct {
	Since   string `json:"since,omitzero"`
	Wait    int64  `json:"waitMs,omitzero"`  // at most 25,000
	Urgency string `json:"urgency,omitzero"` // these three as in escalation.list
	Claimed string `json:"claimed,omitzero"`
	Search  string `json:"search,omitzero"`
}

// Watched answers escalation.watch.
type Watched struct {
	Cursor  string           `json:"cursor"`
	Changed []EscalationItem `json:"changed"` // as they are now, each once
	// Reset: too much has changed since the cursor to say what. List anew.
	Reset bool `json:"reset,omitzero"`
}
