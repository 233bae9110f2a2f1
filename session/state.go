// Package session is what happens: the lifecycle of a negotiation, who may act
// when, and what each act does.
//
// [Step] is pure and total: it answers every event in every state, and a
// refusal leaves the state as it was. A [State] is a value: copying it costs
// nothing, older copies stay valid, and folding a transcript yields the very
// state that the broker had. Time comes in with the event; deadlines run on the
// session's clock, which stands still while a human is deciding.
package session

import (
	"time"

	"github.com/benbjohnson/immutable"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/persist"
	"github.com/parley-asp/parley/performatives"
)

// A State is a session at one point of its transcript. The zero State with an
// ID, from New, is a session that does not exist yet.
type State struct {
	ID      performatives.SessionID
	Phase   Phase
	Mode    *Mode       // nil while IDLE
	Own     any         // the mode's own state: an immutable value
	Agreed  *Invitation // what the invitation in force asks for; nil while IDLE
	Policy  performatives.Policy
	Created time.Time          // when the first entry was accepted
	Updated time.Time          // when the last entry was accepted
	Closing string             // why it is over: a code, an outcome or ""
	Head    performatives.Hash // of the last entry
	Next    uint64             // sequence number of the next entry
	Last    Effect             // of the last entry

	modes      Modes
	inviter    performatives.Agent
	invitation *Offer
	principals int
	order      []performatives.Agent // parties in the order in which they came
	limited    []performatives.Agent // those of conformance level Minimal; never changed
	parties    persist.Table[performatives.Agent, Party]
	live       persist.Table[string, *Offer]        // offers whose status is Open; some of them have expired
	past       persist.Table[string, *Offer]        // all others
	openTerms  *immutable.SortedMap[string, string] // open offers by side, terms and when they expire
	threads    *immutable.SortedMap[string, string] // … by type, subject and when they expire
	expiries   *immutable.SortedMap[string, string] // … by when they expire
	awaited    *immutable.SortedMap[string, string] // messages that ask for an answer within a time, by when
	questions  persist.Table[string, *Question]
	asking     persist.Table[string, bool] // ids of questions with open fields
	queries    persist.Table[string, *openQuery]
	grants     persist.Table[delegation.ID, delegation.Grant]
	grantOrder []delegation.ID
	agreements []Agreement
	concluded  []uint64    // see Concluded
	acceptedIn uint64      // the entry that accepted an offer last; 0 for none
	terms      []Agreement // accepted proposals that bind nobody yet
	items      persist.Table[escalation.ID, *escalation.Item]
	asked      []*escalation.Item // by the newest ESCALATE, or to confirm an agreement; never changed
	deciders   persist.Table[performatives.Organisation, bool]
	bounds     persist.Table[performatives.Agent, *escalation.Bound] // by side: what rulings let it agree to
	bound      persist.Table[string, Binding]

	agreedExactly persist.Table[escalation.ID, []string] // by the escalation in which a human approved exact terms: the offers that were agreed; never changed

	seen   persist.Table[performatives.MessageID, *Seen] // all but the newest
	latest Seen                                          // of the last entry; the zero value before the first

	openCommitments, acceptedCommitments int
	promised                             int // obligations of accepted commitments
	standbys                             int // parties who stand by

	executing          bool          // what was agreed is carried out
	carried            []*Commitment // out
	obligations        persist.Table[string, *Obligation]
	obliged            []string                             // keys of the obligations, in their order
	dues               *immutable.SortedMap[string, due]    // what the broker has to enter, by when
	owed               *immutable.SortedMap[string, string] // obligations that wait for their party, by party and deadline
	toAnswer           persist.Table[string, string]        // obligations by the delivery that waits for an answer
	deliveries         persist.Table[string, *Delivery]     // all of them
	aboutObligation    persist.Table[string, string]        // obligations by the entries that are about them
	owing              int                                  // obligations that keep the session open
	unmet              Unmet
	openDues           *immutable.SortedMap[string, string] // obligations of which something is due, to be answered or disputed, by when
	disputesChanged    uint64                               // the entry that changed a dispute last
	obligationsChanged uint64                               // the entry that changed an obligation last
	leaving            []performatives.Agent                // parties who said CLOSE while something is due; never changed
	quiet              time.Time                            // since when nothing is due or disputed, on the session's clock
	arbiter            performatives.Member                 // the zero Member for nobody
	claims             persist.Table[string, *Dispute]
	people             []escalation.ID               // the open items of disputes; never changed
	filed              []string                      // ids of disputes, in their order
	remedies           persist.Table[string, string] // disputes by the replies that offer to end them
	disputing          int                           // open disputes

	taken  uint64 // turns, see Turns
	turned uint64 // the entry that took the newest

	size      int      // about how much of memory it takes
	compacted string   // the expiries before are of compact offers
	restored  []string // compact offers that are whole for the next Step

	resumeTo Phase
	pausedAt time.Time
	banked   time.Duration
	duration time.Time // when the session's time is over, on its clock
	answerBy time.Time // when the invitation must be answered, on its clock
}

// New is a session that nobody has opened yet. modes are those that its
// invitation may pick.
func New(id performatives.SessionID, modes Modes) State {
	return State{
		ID: id, Head: performatives.NoHash, modes: modes,
		expiries: immutable.NewSortedMap[string, string](nil), openTerms: immutable.NewSortedMap[string, string](nil),
		threads: immutable.NewSortedMap[string, string](nil), awaited: immutable.NewSortedMap[string, string](nil),
	}
}

// An Effect is what an entry did besides changing the state: what the broker
// writes on it and whom it delivers it to.
type Effect struct {
	OnBehalfOf performatives.Agent
	Joined     []performatives.Member
	Routes     []*performatives.Route // those that Joined has sealed, with their names
	Disputes   []*escalation.Item     // of disputes, that it opened or ended

	sender performatives.Agent
	now    time.Time             // on the session's clock
	simple bool                  // Minimal agents receive it, too
	also   []performatives.Agent // who receives the entry though not, or no longer, a participant who may act
	ended  []string              // offers that it ended
}

// A Seen is an accepted message: enough to answer it again.
type Seen struct {
	ID         performatives.MessageID
	Sequence   uint64
	Sender     performatives.Agent
	Digest     [32]byte
	Hash       performatives.Hash
	Phase      Phase
	AcceptedAt time.Time
}

// A Role is what somebody is in the session.
type Role uint8

// The roles.
const (
	Inviter  Role = iota + 1
	Invitee       // a principal like the inviter
	Delegate      // acts for a principal
	Approver      // a human who may decide an escalation of the organisation
	Standby       // takes turns that its principal leaves waiting
	Arbiter       // decides disputes
)

var roleNames = [...]string{"", "inviter", "invitee", "delegate", "approver", "standby", "arbiter"}

func (r Role) String() string { return roleNames[r] }

// A Party has, or had, a part in the session.
type Party struct {
	performatives.Member
	Role     Role
	Grant    delegation.ID   // of a delegate: the one that it accepted, else the first that it may accept
	Waiting  []delegation.ID // offered to it by other sides meanwhile; never changed
	Answered bool            // of an invitee: accepted the invitation
	Sequence uint64          // of the entry by which it came

	StandsFor performatives.Agent // of a standby: its principal

	keys    []performatives.Key // all that were pinned for it, the newest last; never changed
	unasked bool                // its invitation was accepted in advance, and it has accepted nothing since
}

// A kind is what an id names.
type kind uint8

const (
	nothing kind = iota
	anInvitation
	aProposal
	aCommitment
	aDelegation
	aClarification
	anEscalation
	anAmendment
	aDelivery
	aRemedy
	aDispute
)

// A Status is how an offer stands.
type Status uint8

// An offer is open until one of these happens to it. Expired is a matter of
// time and never stored: ask Offer.StatusAt.
const (
	Open Status = iota
	Accepted
	Rejected
	Countered
	Superseded // by a PROPOSE in its thread
	WithdrawnOffer
	Expired
)

var statusNames = [...]string{"open", "accepted", "rejected", "countered", "superseded", "withdrawn", "expired"}

func (s Status) String() string { return statusNames[s] }

// An Offer is an invitation, a proposal, a commitment or an amendment of one: what can be accepted.
type Offer struct {
	ID         string
	Kind       kind
	Sequence   uint64
	Side       performatives.Agent // the principal whose offer it is
	By         performatives.Agent // who sent it
	To         performatives.Agent // the principal who is to answer; "" is every other one
	Status     Status
	Supersedes string // the offer that it countered, or carries out; the commitment that it amends
	Line       string // the first offer of its line of counters
	Type       string
	Subject    string
	Schema     string
	Terms      jsontext.Value
	Body       jsontext.Value
	Compact    bool      // Terms and Body are in its entry only
	Expires    time.Time // on the session's clock; zero is never
	moved      uint64    // the entry that made it, or that asked or answered about it last
	movedAt    time.Time // when that was, on the session's clock
	openAs     string    // a proposal's key among the open terms
	promises   int       // obligations of a commitment
	acceptedBy persist.Table[performatives.Agent, bool]
	questions  persist.Table[string, bool] // of clarifications still open
}

// IsProposal tells a proposal from an invitation and a commitment.
func (o *Offer) IsProposal() bool { return o.Kind == aProposal }

// IsCommitment reports whether it was made by COMMIT.
func (o *Offer) IsCommitment() bool { return o.Kind == aCommitment }

// CommitmentTerms are the terms of a commitment, which only its body has; nil of another offer.
func (o *Offer) CommitmentTerms() jsontext.Value {
	var body struct {
		Terms jsontext.Value `json:"terms"`
	}
	if !o.IsCommitment() || json.Unmarshal(o.Body, &body) != nil {
		return nil
	}
	return body.Terms
}

// IsAmendment reports whether it offers other obligations in place of those of a commitment.
func (o *Offer) IsAmendment() bool { return o.Kind == anAmendment }

// StatusAt is how the offer stands at a time on the session's clock.
func (o *Offer) StatusAt(now time.Time) Status {
	if o.Status == Open && !o.Expires.IsZero() && !now.Before(o.Expires) {
		return Expired
	}
	return o.Status
}

// A Question is a CLARIFY that waits for answers.
type Question struct {
	ID       string
	Offer    string
	By       performatives.Agent // the principal who asks
	Open     []string            // fields without an answer yet
	Sequence uint64
	options  map[string]map[string]bool // that an answer must be one of, in canonical form, by field; never changed
}

// A Binding is what a message demands of the next act that answers it.
type Binding struct {
	Allowed []string // performatives; nil is any
	Trust   float64
	Met     persist.Table[performatives.Agent, bool] // sides that have answered
	by, to  performatives.Agent
	due     time.Time // when an answer is asked for, on the session's clock; zero for no time
}

// Seen finds an accepted message by its id.
func (s *State) Seen(id performatives.MessageID) (Seen, bool) {
	if id == s.latest.ID {
		return s.latest, id != ""
	}
	if seen, ok := s.seen.Get(id); ok {
		return *seen, true
	}
	return Seen{}, false
}

// Party finds whoever has, or had, a part.
func (s *State) Party(a performatives.Agent) (Party, bool) { return s.parties.Get(a) }

// Participants lists the parties in the order in which they came. Do not change it.
func (s *State) Participants() []performatives.Agent { return s.order }

// Inviter is who opened the session.
func (s *State) Inviter() performatives.Agent { return s.inviter }

// Principals is how many principals the session has.
func (s *State) Principals() int { return s.principals }

// Offer finds an invitation, proposal or commitment.
func (s *State) Offer(id string) (*Offer, bool) {
	if o, ok := s.live.Get(id); ok {
		return o, true
	}
	return s.past.Get(id)
}

// named is what an id names in this session: all that a referenceId can name share one space.
func (s *State) named(id string) kind {
	if o, ok := s.Offer(id); ok {
		return o.Kind
	}
	if _, ok := s.grants.Get(delegation.ID(id)); ok {
		return aDelegation
	}
	if _, ok := s.questions.Get(id); ok {
		return aClarification
	}
	if _, ok := s.items.Get(escalation.ID(id)); ok {
		return anEscalation
	}
	if _, ok := s.deliveries.Get(id); ok {
		return aDelivery
	}
	if _, ok := s.remedies.Get(id); ok {
		return aRemedy
	}
	if _, ok := s.claims.Get(id); ok {
		return aDispute
	}
	return nothing
}

// Grant finds a delegation.
func (s *State) Grant(id delegation.ID) (delegation.Grant, bool) { return s.grants.Get(id) }
