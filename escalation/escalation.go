// Package escalation is the pure part of human decisions: what an escalation
// is, when an answer is due, who may decide, and what counts as the same
// decision (PROTOCOL.md §7). The inbox that shows it to people is IO and lives
// apart.
package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// An ID names an escalation: the messageId of its ESCALATE.
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
	MaxPaused       = 7 * 24 * time.Hour // time that all pauses of a session can bank
)

// Within is how long an answer may take by the policy that the session pinned.
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

// An Item is one escalation: what was asked, for whom, and how it ended.
type Item struct {
	ID        ID
	By        performatives.Agent        // who sent the ESCALATE
	Principal performatives.Agent        // for whom, in the end
	Org       performatives.Organisation // whose humans decide
	Body      *performatives.EscalateBody
	At        time.Time
	Due       time.Time
	Sequence  uint64
	Route     *performatives.Route // nil: everybody of the organisation who may decide, and one of them is enough
	Amount    *Amount              // at stake, nil where none can be seen
	Votes     []Vote               // rulings so far, the one that ended it included
	End       End
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
}

// An End is how an item was closed; the zero End is an open item.
type End struct {
	By       performatives.Agent // the human, or the broker for a deadline missed
	How      string              // the ruling's decision, or closed, or expired
	At       time.Time
	Sequence uint64 // of the entry that ended it
}

// The ends that are no ruling.
const (
	EndClosed  = "closed"
	EndExpired = "expired"
)

// Open tells whether the item still waits for a human.
func (i *Item) Open() bool { return i.End.How == "" }

// MayDecide tells whether a member is a human of the organisation who is
// allowed to decide. An agent never is.
func MayDecide(m performatives.Member, org performatives.Organisation) bool {
	return m.Agent.IsHuman() && m.Authority == performatives.AuthorityDecide && m.Agent.Organisation() == org
}

// SameDecision finds the ruling that this one repeats: the same human, the same
// decision.
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

// With is the item and one ruling more.
func (i *Item) With(v Vote) *Item {
	more := *i
	more.Votes = append(slices.Clip(i.Votes), v)
	return &more
}
