// Package escalation is the pure part of human decisions: what an escalation is,
// when an answer is due, who may decide, and which decisions are repeats
// (PROTOCOL.md §7).
package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// An ID identifies an escalation: the messageId of its ESCALATE.
type ID string

// An Urgency says how soon an answer is due.
type Urgency string

// The urgencies.
const (
	Low      Urgency = "low"
	Medium   Urgency = "medium"
	High     Urgency = "high"
	Critical Urgency = "critical"
)

// Default times of a session's policy (PROTOCOL.md §5, §7).
const (
	DefaultLow      = 24 * time.Hour
	DefaultMedium   = 4 * time.Hour
	DefaultHigh     = time.Hour
	DefaultCritical = 15 * time.Minute
	MaxPaused       = 7 * 24 * time.Hour // of a session's clock, all pauses together
)

// Within is how long an answer may take under the session's pinned policy.
func (u Urgency) Within(p performatives.Policy) time.Duration {
	ms := p.EscalationLow
	switch u {
	case Low:
	case Medium:
		ms = p.EscalationMedium
	case High:
		ms = p.EscalationHigh
	case Critical:
		ms = p.EscalationCritical
	}
	return time.Duration(ms) * time.Millisecond
}

// An Item is one escalation: the question, who asked it, and how it ended.
type Item struct {
	ID        ID
	By        performatives.Agent        // sent the ESCALATE
	Principal performatives.Agent        // for whom By acts
	Org       performatives.Organisation // whose humans decide
	Body      *performatives.EscalateBody
	At        time.Time
	Due       time.Time
	Sequence  uint64
	Route     *performatives.Route // nil: any one human of the organisation who may decide
	Offer     string               // at stake; "" if there is none
	Dispute   string               // that the humans answer; "" for an escalation, which they rule on
	Terms     performatives.Hash   // of the proposal at stake; "" if there is none
	Amount    *Amount              // at stake; nil if none was found
	// Unreadable says that something stands where an amount should.
	Unreadable bool
	Sealed     performatives.Digests // of the body's members
	Votes      []Vote                // all rulings, with the one that ended it
	End        End
}

// A Vote is one human's ruling.
type Vote struct {
	By        performatives.Agent
	Decision  string
	Comment   string
	Authority *performatives.RulingsAuthority
	At        time.Time
	Message   performatives.MessageID
	Digest    [32]byte
	Limited   bool                  // the human has a ceiling
	Sealed    performatives.Digests // of authority and comment
	Unopened  bool                  // the authority is sealed, and its part is not here
	AsShown   bool                  // it approves, and the human set no bound
}

// An End is how an item ended. An open item has the zero End.
type End struct {
	By       performatives.Agent // the human, or the broker if a deadline passed
	How      string              // the ruling's decision, EndClosed or EndExpired
	At       time.Time
	Sequence uint64 // of the entry that ended it
}

// The ends without a ruling.
const (
	EndClosed  = "closed"
	EndExpired = "expired"
)

// Open reports whether the item still waits for a decision.
func (i *Item) Open() bool { return i.End.How == "" }

// Confirms reports whether the item asks to confirm what an agent has agreed to.
func (i *Item) Confirms() bool { return Confirms(i.Body.Reason) }

// Confirms reports whether an item with a reason asks to confirm what an agent has agreed to: an agreement, or
// what was delivered. It is approved or denied as it is, and allows nothing else.
func Confirms(reason string) bool {
	return reason == performatives.Confirmation || reason == performatives.Delivered
}

// OfDelivery reports whether the item asks to accept what was delivered.
func (i *Item) OfDelivery() bool { return i.Body.Reason == performatives.Delivered }

// MayDecide reports whether a member is a human of the organisation with the
// authority to decide. Agents never may.
func MayDecide(m performatives.Member, org performatives.Organisation) bool {
	return m.Agent.IsHuman() && m.Authority == performatives.AuthorityDecide && m.Agent.Organisation() == org
}

// SameDecision finds the ruling that this one repeats: same human, same decision.
func (i *Item) SameDecision(by performatives.Agent, digest [32]byte) (Vote, bool) {
	n := slices.IndexFunc(i.Votes, func(v Vote) bool { return v.By == by && v.Digest == digest })
	if n < 0 {
		return Vote{}, false
	}
	return i.Votes[n], true
}

// VoteOf finds a human's first ruling.
func (i *Item) VoteOf(by performatives.Agent) (Vote, bool) {
	n := slices.IndexFunc(i.Votes, func(v Vote) bool { return v.By == by })
	if n < 0 {
		return Vote{}, false
	}
	return i.Votes[n], true
}

// With returns the item with one more ruling.
func (i *Item) With(v Vote) *Item {
	more := *i
	more.Votes = append(slices.Clip(i.Votes), v)
	return &more
}
