package session

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/benbjohnson/immutable"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// What was agreed is carried out in the same session (COMMITMENTS.md C2). Each obligation is due
// until its party has delivered and the other side has accepted that, or did not answer in time.

// Times and bounds of execution.
const (
	AcceptanceWindow = 72 * time.Hour      // how long a delivery waits for an answer, unless agreed otherwise
	DisputeWindow    = 14 * 24 * time.Hour // after which a session in which nothing is due ends by itself
	LongestDispute   = 30 * 24 * time.Hour // after which a dispute is unresolved
	MostObligations  = 1000                // of a session
	MostDisputes     = 100

	longestExecution = 10 // years
)

// Where an obligation stands.
const (
	ObligationDue       = "due"
	ObligationAsserted  = "asserted" // delivered, and not answered yet
	ObligationFulfilled = "fulfilled"
	ObligationPartial   = "partial"  // accepted in part; the rest is still due
	ObligationDeemed    = "deemed"   // fulfilled, since nobody answered in time
	ObligationLate      = "late"     // fulfilled after it was breached
	ObligationBreached  = "breached" // its deadline has passed, and nothing was delivered
	ObligationWaived    = "waived"
	ObligationReleased  = "released" // by the CLOSE of every party
	ObligationDisputed  = "disputed"
)

// A Commitment is an agreement that is carried out.
type Commitment struct {
	ID      string // of the COMMIT, else of the accepted proposal
	Parties []performatives.Agent
	entries []uint64 // that made it
}

// An Obligation is one thing that one party of a commitment has to do: an immutable value.
type Obligation struct {
	performatives.Obligation
	Commitment string
	Remains    *big.Rat  // of the quantity, still due; nil without a quantity
	Accepted   *big.Rat  // of the quantity; nil for nothing
	Delivery   *Delivery // that waits for an answer; nil for none
	Breached   bool      // the deadline in force has passed, and nothing was delivered
	Breaches   int       // on record
	BreachedIn uint64    // the entry that recorded the newest of them
	Disputes   int       // open
	Since      uint64    // the entry since which it is due
	Ended      string    // how, once nothing is due any more

	deadline time.Time // on the session's clock; zero for none
	due      time.Time // when the broker has to enter an event, on the session's clock; zero for never
}

// A Delivery is an INFORM result of an obligation.
type Delivery struct {
	ID         string // its messageId
	Obligation string // the obligation's key
	By         performatives.Agent
	Quantity   *big.Rat // nil is all that was due
	Evidence   []performatives.Evidence
	Sequence   uint64
	Late       bool      // the obligation was breached
	Until      time.Time // when it counts as accepted, on the session's clock

	accepting *acceptance // that waits for people; nil for none
}

// Status is where the obligation stands.
func (o *Obligation) Status() string {
	switch {
	case o.Disputes > 0:
		return ObligationDisputed
	case o.Ended != "":
		return o.Ended
	case o.Delivery != nil:
		return ObligationAsserted
	case o.Breached:
		return ObligationBreached
	case o.Accepted != nil:
		return ObligationPartial
	}
	return ObligationDue
}

// Holds reports whether the obligation keeps its session open while it is due. One of mere text does not.
func (o *Obligation) Holds() bool {
	return o.Deadline != nil || o.Quantity != nil || o.VerificationMethod != ""
}

// DueBy is its deadline on the session's clock; the zero time for none.
func (o *Obligation) DueBy() time.Time { return o.deadline }

// StillDue reports whether it can still be delivered, waived or amended.
func (o *Obligation) StillDue() bool { return o.Ended == "" && o.Delivery == nil }

func (o *Obligation) key() string { return keyOf(o.Commitment, o.ID) }

func keyOf(commitment, id string) string { return commitment + "\x00" + id }

// Name names the obligation in its session, such as k1/0.
func (o *Obligation) Name() string { return o.Commitment + "/" + o.ID }

// name is how a sentence names an obligation.
func (o *Obligation) name() string { return fmt.Sprintf("obligation %q of %q", o.ID, o.Commitment) }

// Executing reports whether the session carries out what was agreed.
func (s *State) Executing() bool { return s.executing }

// Commitments are what is carried out, in the order of the transcript.
func (s *State) Commitments() []*Commitment { return s.carried }

// Commitment finds one by its id.
func (s *State) Commitment(id string) (*Commitment, bool) {
	i := slices.IndexFunc(s.carried, func(c *Commitment) bool { return c.ID == id })
	if i < 0 {
		return nil, false
	}
	return s.carried[i], true
}

// Obligations are those of all commitments, in the order in which they were agreed.
func (s *State) Obligations() []*Obligation {
	all := make([]*Obligation, 0, len(s.obliged))
	for _, key := range s.obliged {
		o, _ := s.obligations.Get(key)
		all = append(all, o)
	}
	return all
}

// Obligation finds one by the ids of its commitment and its own.
func (s *State) Obligation(commitment, id string) (*Obligation, bool) {
	return s.obligations.Get(keyOf(commitment, id))
}

// Leaving are the parties whose CLOSE waits for that of the others. Do not change it.
func (s *State) Leaving() []performatives.Agent { return s.leaving }

// obligationsIn reads the obligations of terms, such as those of a COMMIT, and gives each its id.
func obligationsIn(terms jsontext.Value) ([]performatives.Obligation, error) {
	body, err := json.Marshal(map[string]any{"commitmentId": "c", "terms": terms}, json.Deterministic(true))
	if err != nil {
		return nil, RefuseSchema(Fault{Path: "/terms", Rule: "type", Message: "the terms are no object"})
	}
	if faults := schemas.Validate(performatives.Commit, body); len(faults) > 0 {
		all := make([]Fault, len(faults))
		for i, f := range faults {
			all[i] = Fault(f)
		}
		return nil, RefuseSchema(all...)
	}
	var read performatives.CommitmentTerms
	if err := json.Unmarshal(terms, &read); err != nil {
		return nil, RefuseSchema(Fault{Path: "/terms", Rule: "type", Message: "the terms have no obligations"})
	}
	return identified(read.Obligations)
}

// identified gives each obligation its id, and refuses too many, or two of one id.
func identified(all []performatives.Obligation) ([]performatives.Obligation, error) {
	if len(all) > MostObligations {
		return nil, RefuseSchema(tooManyObligations(len(all)))
	}
	all, has := slices.Clone(all), make(map[string]bool, len(all))
	for i := range all {
		if all[i].ID == "" {
			all[i].ID = strconv.Itoa(i)
		}
		if has[all[i].ID] {
			return nil, RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d/id", i), Rule: "unique", Message: fmt.Sprintf("two obligations have the id %q", all[i].ID),
			})
		}
		has[all[i].ID] = true
	}
	return all, nil
}

func tooManyObligations(n int) Fault {
	return Fault{Path: "/terms/obligations", Rule: "maxItems", Message: fmt.Sprintf("that makes %d obligations; a session has at most %d", n, MostObligations)}
}

// fitsExecution refuses obligations in an offer that could not be carried out.
func (t *Command) fitsExecution() error {
	var terms struct {
		Obligations jsontext.Value `json:"obligations"`
	}
	if !t.Agreed.execution || json.Unmarshal(t.offering.Terms, &terms) != nil || terms.Obligations == nil {
		return nil //nolint:nilerr // terms that are no object promise nothing
	}
	promised, err := obligationsIn(t.offering.Terms)
	if err != nil {
		return err
	}
	return ofParties(promised, t.Sides())
}

// ofParties refuses obligations of somebody who is no party of the commitment.
func ofParties(all []performatives.Obligation, parties []performatives.Agent) error {
	for i, o := range all {
		if !slices.Contains(parties, o.Party) {
			return RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d/party", i), Rule: "participant",
				Message: fmt.Sprintf("%s is no party of the commitment, so cannot be obliged by it", o.Party),
			})
		}
	}
	return nil
}

// execute begins to carry out what was agreed, once the act has made the last of it.
func (t *Command) execute() {
	if t.executing || t.Before(7) {
		return
	}
	switch {
	case t.Phase == Executing && !t.Mode.Signed:
	case t.Phase == Closed && t.Was != Closed && t.Act != performatives.Close && t.continues():
		t.Phase, t.Closing = Executing, ""
	default:
		return
	}
	t.executing = true
	t.dues, t.owed = immutable.NewSortedMap[string, due](nil), immutable.NewSortedMap[string, string](nil)
	t.openDues = immutable.NewSortedMap[string, string](nil)
	t.duration = t.Now.AddDate(longestExecution, 0, 0)
	for _, a := range t.agreements {
		t.carryOut(a)
	}
	t.rests()
}

// continues reports whether an agreement that ended its negotiation is carried out in the session: the
// invitation says so, or its terms have obligations by a schema that was agreed.
func (t *Command) continues() bool {
	return !t.Mode.Commits && slices.ContainsFunc(t.agreements, func(a Agreement) bool {
		o, ok := t.State.Offer(a.Proposal)
		if !ok {
			return false
		}
		promised, err := obligationsIn(o.Terms)
		return t.Agreed.execution || o.Schema != "" && err == nil && len(promised) > 0 && ofParties(promised, t.Sides()) == nil
	})
}

// carryOut makes the obligations of an agreement.
func (t *Command) carryOut(a Agreement) {
	c := &Commitment{ID: a.Proposal, Parties: a.Parties, entries: []uint64{a.Offer, a.Commit, a.Acceptance, a.Close, a.Confirmed}}
	var promised []performatives.Obligation
	made := a.Commitment
	if made == "" && t.Act == performatives.Commit { // in a mode in which nobody accepts it
		made = t.offering.ID
	}
	if o, ok := t.State.Offer(made); ok && o.promises > 0 {
		c.ID = o.ID
		var body performatives.CommitBody
		if json.Unmarshal(o.Body, &body) == nil && body.Terms != nil {
			promised, _ = identified(body.Terms.Obligations)
		}
	} else if o, ok := t.State.Offer(a.Proposal); ok {
		promised, _ = obligationsIn(o.Terms)
	}
	t.carried = append(slices.Clip(t.carried), c)
	for _, o := range promised {
		t.oblige(c.ID, o, nil)
	}
}

// oblige enters an obligation, in place of one that it amends.
func (t *Command) oblige(commitment string, promised performatives.Obligation, amends *Obligation) {
	o := Obligation{Obligation: promised, Commitment: commitment, Since: t.Next, deadline: t.until(promised.Deadline)}
	if promised.Quantity != nil {
		o.Remains = exactly(*promised.Quantity)
	}
	if amends != nil {
		o.Breaches, o.BreachedIn, o.Disputes, o.Accepted = amends.Breaches, amends.BreachedIn, amends.Disputes, amends.Accepted
	}
	t.setObligation(o)
}

// setObligation enters what has become of an obligation.
func (t *Command) setObligation(o Obligation) {
	key := o.key()
	if old, again := t.obligations.Get(key); again {
		t.unindex(old)
	} else {
		t.obliged = append(slices.Clip(t.obliged), key)
		t.size += entryOverhead
	}
	switch {
	case o.Ended != "", o.Delivery == nil && o.Breached, o.Delivery != nil && o.Disputes > 0: // nobody has to answer what is disputed
		o.due = time.Time{}
	case o.Delivery != nil:
		o.due = o.Delivery.Until
	default:
		o.due = o.deadline
	}
	t.obligations = t.obligations.With(key, &o)
	t.index(&o)
	t.rests()
}

// exactly is a number as it is written, not as the nearest double is.
func exactly(f float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

// nearest is the double that is nearest to a quantity.
func nearest(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}
