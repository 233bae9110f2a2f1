package session

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// execution has the rules of a session that carries out what was agreed, in place of those of the
// mode in which it was negotiated.
var execution = &Mode{Name: "execution", Turn: executionTurn}

// mode has the rules in force.
func (s *State) mode() *Mode {
	if s.executing {
		return execution
	}
	return s.Mode
}

// inform is the body of an INFORM, nil for another act.
func (t *Command) inform() *performatives.InformBody {
	body, _ := t.Message.Body.(*performatives.InformBody)
	return body
}

// ofExecution refuses what is said of commitments where none is carried out, and what says nothing
// of them where one is.
func (t *Command) ofExecution() error {
	if inform := t.inform(); inform != nil && !t.Before(7) {
		_, decides := inform.Decides()
		switch kind := inform.Kind(); {
		case kind == performatives.Event:
			return Refuse(Unauthorized, "only the broker enters an INFORM event")
		case t.executing:
		case decides, kind == performatives.Waiver, kind == performatives.Dispute, kind == performatives.Reply:
			return t.wrongState("INFORM %s is of a commitment that is carried out; none is while %s", kind, t.Phase)
		}
		return nil
	}
	propose, _ := t.Message.Body.(*performatives.ProposeBody)
	if propose != nil && propose.Type == performatives.Amendment && !t.executing && !t.Before(7) {
		return t.wrongState("PROPOSE of type amendment is of a commitment that is carried out; none is while %s", t.Phase)
	}
	if t.Phase != Executing || t.about != nil || t.question != nil && t.Act == performatives.Withdraw {
		return nil
	}
	switch {
	case !executionActs[t.Act]:
		return nil
	case !t.executing:
		return t.wrongState("%s is not allowed while %s", t.Act, t.Phase)
	case propose != nil && propose.Type != performatives.Amendment:
		return t.wrongState("PROPOSE while EXECUTING is of type amendment")
	case t.Offer != nil && t.Offer.Kind != anAmendment && t.Act != performatives.Propose:
		return t.wrongState("%s while EXECUTING is of a delivery or an amendment; %q is neither", t.Act, t.Offer.ID)
	}
	return nil
}

// executionActs are allowed in EXECUTING of what is carried out only.
var executionActs = map[performatives.Performative]bool{
	performatives.Propose: true, performatives.Accept: true, performatives.Reject: true, performatives.Withdraw: true,
}

// mayExecute refuses who speaks for a party of a commitment with less than its full authority.
func (t *Command) mayExecute() error {
	inform := t.inform()
	if inform == nil || !t.executing {
		return nil
	}
	if _, decides := inform.Decides(); decides {
		if t.From.Role != Arbiter {
			return Refuse(Unauthorized, "only the arbiter decides a dispute%s", t.whoDecides())
		}
		return nil
	}
	if !speaksFor(inform) {
		return nil
	}
	if t.From.Role == Delegate && t.Grant != nil && t.Grant.Authority != delegation.Full {
		return Refuse(AuthorityExceeded, "INFORM %s of a commitment needs full authority, and yours is %s", inform.Kind(), t.Grant.Authority).
			With(map[string]any{"delegationId": t.Grant.ID, "authority": t.Grant.Authority.String(), "allows": actNames(t.Grant.Authority.Acts())})
	}
	return nil
}

// speaksFor reports whether an INFORM says something for a party of a commitment.
func speaksFor(b *performatives.InformBody) bool {
	_, delivers := b.Delivery()
	_, reports := b.Progress()
	kind := b.Kind()
	return delivers || reports || kind == performatives.Waiver || kind == performatives.Dispute || kind == performatives.Reply
}

// obligationAbout finds an obligation that an act names, and refuses who is no party of its commitment.
func (t *Command) obligationAbout(commitment string, id performatives.ObligationID) (*Obligation, error) {
	c, ok := t.Commitment(commitment)
	if !ok {
		return nil, unknownReference(commitment, "commitment")
	}
	o, ok := t.State.Obligation(commitment, string(id))
	if !ok {
		return nil, unknownReference(string(id), fmt.Sprintf("obligation of commitment %q", commitment))
	}
	return o, t.ofCommitment(c)
}

// ofCommitment refuses who is no party of a commitment.
func (t *Command) ofCommitment(c *Commitment) error {
	if slices.Contains(c.Parties, t.Side) {
		return nil
	}
	return Refuse(Unauthorized, "%s is no party of commitment %q", t.Side, c.ID)
}

// obliges refuses what only the party of an obligation says.
func (t *Command) obliges(o *Obligation, what string) error {
	if o.Party == t.Side {
		return nil
	}
	return Refuse(Unauthorized, "%s owes %s, and is who says INFORM %s of it", o.Party, o.name(), what)
}

// stillDue refuses what needs an obligation that is due.
func stillDue(o *Obligation) error {
	if o.StillDue() {
		return nil
	}
	how := o.Ended
	if how == "" {
		how = ObligationAsserted
	}
	return Refuse(ProposalNotOpen, "%s is not due any more: it is %s", o.name(), how).
		With(map[string]string{"commitmentId": o.Commitment, "obligation": o.ID, "status": how})
}

// executes judges an INFORM about what is carried out.
func (t *Command) executes() error {
	inform := t.inform()
	if d, ok := inform.Delivery(); ok {
		return t.delivers(d)
	}
	if p, ok := inform.Progress(); ok {
		o, err := t.obligationAbout(p.CommitmentID, p.Obligation)
		if err != nil {
			return err
		}
		if o.Ended != "" {
			return stillDue(o)
		}
		return t.obliges(o, performatives.Progress)
	}
	if w, ok := inform.Waiver(); ok {
		return t.waives(w)
	}
	return t.judgesDispute()
}

// delivers judges a result. One of an obligation whose delivery waits for an answer takes its place.
func (t *Command) delivers(d performatives.ResultData) error {
	o, err := t.obligationAbout(d.CommitmentID, d.Obligation)
	if err != nil {
		return err
	}
	if err := t.obliges(o, performatives.Result); err != nil {
		return err
	}
	if o.Ended != "" {
		return stillDue(o)
	}
	var faults []Fault
	switch {
	case d.Quantity != nil && o.Remains == nil:
		faults = append(faults, Fault{Path: "/data/quantity", Rule: "quantity", Message: o.name() + " has no quantity"})
	case d.Quantity != nil && exactly(*d.Quantity).Cmp(o.Remains) > 0:
		faults = append(faults, Fault{Path: "/data/quantity", Rule: "maximum", Message: fmt.Sprintf("%v is more than is due of %s: %v", *d.Quantity, o.name(), nearest(o.Remains))})
	}
	if d.Unit != "" && d.Unit != o.Unit {
		faults = append(faults, Fault{Path: "/data/unit", Rule: "unit", Message: fmt.Sprintf("the unit of %s is %q", o.name(), o.Unit)})
	}
	if faults != nil {
		return RefuseSchema(faults...)
	}
	t.obligation = o
	return nil
}

func (t *Command) waives(w performatives.WaiverData) error {
	o, err := t.obligationAbout(w.CommitmentID, w.Obligation)
	if err != nil {
		return err
	}
	if o.Party == t.Side {
		return Refuse(Unauthorized, "%s is yours: the other side waives it", o.name())
	}
	if o.Ended != "" {
		return stillDue(o)
	}
	t.obligation = o
	return nil
}

// executed carries out an INFORM about a commitment or a dispute.
func (t *Command) executed() {
	inform := t.inform()
	if d, ok := inform.Delivery(); ok {
		t.delivered(d)
		return
	}
	if _, ok := inform.Waiver(); ok {
		o := *t.obligation
		o.Ended, o.Delivery = ObligationWaived, nil
		t.setObligation(o)
		t.concerns(o.key())
		return
	}
	if _, ok := inform.Progress(); !ok {
		t.disputed()
	}
}

func (t *Command) delivered(d performatives.ResultData) {
	o := *t.obligation
	window := AcceptanceWindow
	if ms := o.AcceptanceWindowMs; ms > 0 {
		window = time.Duration(ms) * time.Millisecond
	}
	o.Delivery = &Delivery{
		ID: string(t.Message.ID), Obligation: o.key(), By: t.From.Agent, Evidence: d.Evidence, Sequence: t.Next, Late: o.Breached,
		Until: t.Now.Add(window),
	}
	if d.Quantity != nil {
		o.Delivery.Quantity = exactly(*d.Quantity)
	}
	t.deliveries = t.deliveries.With(o.Delivery.ID, o.Delivery)
	t.setObligation(o)
	t.concerns(o.key())
	t.size += len(t.Message.RawBody)
}

// concerns notes that the entry is about an obligation, for a dispute about it.
func (t *Command) concerns(obligation string) {
	t.aboutObligation = t.aboutObligation.With(sequenceKey(t.Next), obligation)
}

// answersDelivery judges an ACCEPT or REJECT of what was delivered.
func (t *Command) answersDelivery(quantity *float64) error {
	o, _ := t.obligations.Get(t.delivery.Obligation)
	c, _ := t.Commitment(o.Commitment)
	if o.Party == t.Side {
		return Refuse(OwnProposal, "it is your own delivery; the other side answers it")
	}
	if err := t.ofCommitment(c); err != nil {
		return err
	}
	if o.Delivery == nil || o.Delivery.ID != t.delivery.ID {
		status := "superseded"
		if o.Delivery == nil {
			status = o.Status()
		}
		return Refuse(ProposalNotOpen, "the delivery waits for no answer: %s is %s", o.name(), status).
			With(map[string]string{"referenceId": t.delivery.ID, "status": status})
	}
	if quantity != nil {
		if o.Remains == nil {
			return RefuseSchema(Fault{Path: "/quantity", Rule: "quantity", Message: o.name() + " has no quantity"})
		}
		if most := o.Delivery.delivers(o); exactly(*quantity).Cmp(most) > 0 {
			return RefuseSchema(Fault{Path: "/quantity", Rule: "maximum", Message: fmt.Sprintf("%v is more than was delivered: %v", *quantity, nearest(most))})
		}
	}
	t.obligation = o
	return nil
}

// delivers is the quantity that a delivery is of.
func (d *Delivery) delivers(o *Obligation) *big.Rat {
	if d.Quantity != nil {
		return d.Quantity
	}
	return o.Remains
}

// takes carries out an ACCEPT of what was delivered.
func (t *Command) takes() {
	var quantity *big.Rat
	if body := t.Message.Body.(*performatives.AcceptBody); body.Quantity != nil { //nolint:errcheck,forcetypeassert // its act says so
		quantity = exactly(*body.Quantity)
	}
	t.take(*t.obligation, quantity, ObligationFulfilled)
}

// take accepts what was delivered of an obligation: a quantity of it, or all; how is what it is once
// nothing is due any more.
func (t *Command) take(o Obligation, quantity *big.Rat, how string) {
	d := o.Delivery
	o.Delivery, o.Since = nil, t.Next
	if o.Remains != nil {
		if quantity == nil {
			quantity = d.delivers(&o)
		}
		o.Remains = new(big.Rat).Sub(o.Remains, quantity)
		sum := quantity
		if o.Accepted != nil {
			sum = new(big.Rat).Add(o.Accepted, quantity)
		}
		o.Accepted = sum
	}
	if o.Remains == nil || o.Remains.Sign() == 0 {
		if o.Ended = how; d.Late && how == ObligationFulfilled {
			o.Ended = ObligationLate
		}
	}
	t.setObligation(o)
	t.concerns(o.key())
}

// dueAgain makes an obligation due whose delivery was turned down.
func (t *Command) dueAgain(o Obligation) {
	o.Delivery, o.Since = nil, t.Next
	t.setObligation(o)
	t.concerns(o.key())
}

// amends judges a PROPOSE of other obligations in place of those that are still due.
func (t *Command) amends(o *Offer, reference string) error {
	t.offering = o
	o.Kind, o.Supersedes = anAmendment, reference
	if !o.Expires.IsZero() && !t.Now.Before(o.Expires) {
		return Refuse(StaleTimestamp, "validUntil has passed, so nobody could answer the offer")
	}
	c, ok := t.Commitment(reference)
	if !ok {
		return unknownReference(reference, "commitment")
	}
	if err := t.ofCommitment(c); err != nil {
		return err
	}
	if err := t.newID(o.ID); err != nil {
		return err
	}
	amended, err := obligationsIn(o.Terms)
	if err != nil {
		return err
	}
	if err := ofParties(amended, c.Parties); err != nil {
		return err
	}
	return t.amendable(reference, amended)
}

// amendable refuses to replace what is not due any more, and more obligations than a session has.
func (t *Command) amendable(commitment string, amended []performatives.Obligation) error {
	more := 0
	for _, a := range amended {
		o, has := t.State.Obligation(commitment, a.ID)
		if !has {
			more++
		} else if err := stillDue(o); err != nil {
			return err
		}
	}
	if total := len(t.obliged) + more; total > MostObligations {
		return RefuseSchema(tooManyObligations(total))
	}
	return nil
}

// answersAmendment judges an ACCEPT, REJECT or CLARIFY of an amendment.
func (t *Command) answersAmendment() error {
	c, _ := t.Commitment(t.Offer.Supersedes)
	if err := t.ofCommitment(c); err != nil || t.Act != performatives.Accept {
		return err
	}
	amended, _ := obligationsIn(t.Offer.Terms)
	return t.amendable(c.ID, amended)
}

// amended puts the obligations of an amendment that every party has accepted in force. Who wanted to
// leave did not know of them.
func (t *Command) amended(o *Offer) {
	all, _ := obligationsIn(o.Terms)
	for _, a := range all {
		before, _ := t.State.Obligation(o.Supersedes, a.ID)
		t.oblige(o.Supersedes, a, before)
		t.concerns(keyOf(o.Supersedes, a.ID))
	}
	t.leaving = nil
}

// leaves judges a CLOSE. While something is due, it takes that of every party of the commitments.
func (t *Command) leaves() error {
	switch {
	case !t.executing:
		return nil
	case t.disputing > 0:
		return t.wrongState("CLOSE is not allowed while a dispute is open")
	case t.owing == 0:
		return nil
	case t.Phase == Escalated:
		return Refuse(SessionEscalated, "obligations are due: resolve the escalation, then every party may CLOSE").With(map[string]any{"owing": t.owing})
	case !t.everyParty(func(a performatives.Agent) bool { return a != t.Side }):
	default:
		return Refuse(Unauthorized, "obligations are due, and only the parties of the commitments release them; %s is none", t.Side)
	}
	if slices.Contains(t.leaving, t.Side) {
		return t.wrongState("you have said CLOSE already; while obligations are due, it takes that of every party of the commitments")
	}
	return nil
}

// everyParty reports whether something holds for every party of the commitments.
func (s *State) everyParty(holds func(performatives.Agent) bool) bool {
	for _, c := range s.carried {
		for _, a := range c.Parties {
			if !holds(a) {
				return false
			}
		}
	}
	return true
}

// left notes a CLOSE while obligations are due; once every party has said it, they are released.
func (t *Command) left() {
	if t.owing == 0 {
		return
	}
	t.leaving = append(slices.Clip(t.leaving), t.Side)
	if !t.everyParty(func(a performatives.Agent) bool { return slices.Contains(t.leaving, a) }) {
		return
	}
	for _, o := range t.Obligations() {
		if o.Ended == "" && o.Holds() {
			released := *o
			released.Ended, released.Delivery = ObligationReleased, nil
			t.setObligation(released)
		}
	}
}

// released reports whether a CLOSE ends the session: nothing is due.
func released(s *State) bool { return s.owing == 0 }

// executionTurn is what waits for a side: what was delivered to it, an amendment, a dispute, what
// it was asked, and what it owes.
func executionTurn(s *State, side performatives.Agent, at time.Time) (turn Turn, waits bool) {
	earliest := func(reference string, sequence uint64) {
		if !waits || sequence < turn.Sequence {
			turn, waits = Turn{Side: side, Reference: reference, Sequence: sequence, Since: s.clock(s.Updated), Number: s.Next}, true
		}
	}
	for id, key := range s.toAnswer.All() {
		o, _ := s.obligations.Get(key)
		if c, _ := s.Commitment(o.Commitment); o.Party != side && slices.Contains(c.Parties, side) {
			earliest(id, o.Delivery.Sequence)
		}
	}
	for _, d := range s.Disputes() {
		if d.waitsFor(s, side) {
			earliest(d.DisputeID, d.Sequence)
		}
	}
	for _, o := range s.live.All() {
		if o.Kind == anAmendment && o.StatusAt(s.clock(at)) == Open && s.awaits(o, side) {
			earliest(o.ID, o.moved)
		}
	}
	if asked, is := s.AskedAbout(side, at); is && (!waits || asked.Sequence < turn.Sequence) {
		turn, waits = asked, true
	}
	if !waits {
		turn, waits = s.Queried(side)
	}
	if o := s.firstOwed(side); !waits && o != nil {
		earliest(o.Commitment, o.Since)
	}
	return turn, waits
}

// firstOwed is what a side has to deliver first; nil for nothing.
func (s *State) firstOwed(side performatives.Agent) *Obligation {
	it := s.owed.Iterator()
	it.Seek(string(side) + " ")
	_, key, ok := it.Next()
	if !ok {
		return nil
	}
	if o, _ := s.obligations.Get(key); o.Party == side {
		return o
	}
	return nil
}

// toDecide is the dispute that has waited longest for the arbiter.
func (s *State) toDecide(arbiter performatives.Agent) (Turn, bool) {
	for _, d := range s.Disputes() {
		if d.Status == DisputeOpen {
			return Turn{Side: arbiter, Reference: d.DisputeID, Sequence: d.Sequence, Since: s.clock(s.Updated), Number: s.Next}, true
		}
	}
	return Turn{}, false
}

// executionDeadlines are when the broker has to enter what becomes of an obligation or a dispute, the
// first of them, and when a session in which nothing is due ends.
func (s *State) executionDeadlines(all []Deadline, at time.Time) []Deadline {
	if !s.executing {
		return all
	}
	if s.owing == 0 && s.disputing == 0 {
		return append(all, Deadline{Code: ExecutionComplete, At: s.wall(s.quiet.Add(DisputeWindow), at), Ends: true, To: Closed})
	}
	if s.dues.Len() == 0 {
		return all
	}
	_, first, _ := s.dues.Iterator().Next()
	return append(all, s.dueEvent(first, at))
}

// dueEvent is what the broker enters of an obligation or a dispute.
func (s *State) dueEvent(of due, at time.Time) Deadline {
	d := Deadline{Enters: &performatives.EventData{}}
	if of.dispute != "" {
		dispute, _ := s.claims.Get(of.dispute)
		d.At, d.Ref = s.wall(dispute.due, at), of.dispute
		d.Enters.Event, d.Enters.DisputeID = performatives.Unresolved, of.dispute
		if s.arbiter.Agent == "" && s.shown(dispute) {
			d.Enters.Event, d.Enters.Decision = performatives.Decided, performatives.Upheld
		}
	} else {
		o, _ := s.obligations.Get(of.obligation)
		d.At, d.Ref = s.wall(o.due, at), o.Commitment
		d.Enters.Event, d.Enters.CommitmentID, d.Enters.Obligation = performatives.Breached, o.Commitment, performatives.ObligationID(o.ID)
		if o.Delivery != nil {
			d.Enters.Event, d.Enters.ReferenceID = performatives.Deemed, o.Delivery.ID
		}
	}
	d.Code, d.Enters.Due = d.Enters.Event, stamp(d.At)
	return d
}

// lapses is the deadline of an open escalation. One of a session in which something is due or disputed
// does not end that: who owes could get rid of it so.
func (s *State) lapses(item *escalation.Item) Deadline {
	d := Deadline{Code: EscalationExpired, At: item.Due, Ends: true, Ref: string(item.ID), To: Failed}
	if s.executing && (s.owing > 0 || s.disputing > 0) {
		d.Ends, d.Enters = false, &performatives.EventData{Event: performatives.EscalationLapsed, EscalationID: string(item.ID), Due: stamp(item.Due)}
	}
	return d
}

// happened carries out what the broker enters.
func (t *Command) happened(d Deadline) {
	switch e := d.Enters; e.Event {
	case performatives.Breached:
		o, _ := t.State.Obligation(e.CommitmentID, string(e.Obligation))
		breached := *o
		breached.Breached, breached.Breaches = true, o.Breaches+1
		t.setObligation(breached)
		t.concerns(o.key())
	case performatives.Deemed:
		o, _ := t.State.Obligation(e.CommitmentID, string(e.Obligation))
		t.take(*o, nil, ObligationDeemed)
	case performatives.Decided:
		dispute, _ := t.claims.Get(e.DisputeID)
		t.endDispute(*dispute, e.Decision)
	case performatives.Unresolved:
		dispute, _ := t.claims.Get(e.DisputeID)
		t.endDispute(*dispute, performatives.Unresolved)
	case performatives.EscalationLapsed:
		item, _ := t.items.Get(escalation.ID(e.EscalationID))
		t.endItem(item, t.Message.Sender, escalation.EndExpired)
		if decided(&t.State) {
			t.Phase = t.resumeTo
		}
	}
}
