package session

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
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

// keepsToOffer holds a delegate whose authority is limited to a proposal to the commitments that carry it out. It may
// file any dispute, which binds nobody.
func (t *Command) keepsToOffer() error {
	if t.Grant == nil || t.Grant.Offer == "" || t.From.Role != Delegate || t.event.Replayed {
		return nil
	}
	var commitment string
	switch {
	case t.obligation != nil:
		commitment = t.obligation.Commitment
	case t.ofDispute != nil && t.ofDispute.Sequence != t.Next:
		commitment = t.ofDispute.Commitment
	default:
		return nil
	}
	if o, ok := t.State.Offer(commitment); ok && o.Kind == aCommitment {
		commitment = o.Supersedes
	}
	if commitment == "" || !t.counters(commitment, t.Grant.Offer) {
		return t.exceeded(fmt.Errorf("the authority is limited to the proposal %q and its counters, and this is of another commitment", t.Grant.Offer))
	}
	return nil
}

// obligationAbout finds an obligation that an INFORM names, and refuses who is no party of its commitment.
func (t *Command) obligationAbout(commitment string, id performatives.ObligationID) (*Obligation, error) {
	c, ok := t.Commitment(commitment)
	if !ok {
		return nil, unknown("data.commitmentId", commitment, "commitment")
	}
	o, ok := t.Obligation(commitment, string(id))
	if !ok {
		return nil, unknown("data.obligation", string(id), fmt.Sprintf("obligation of commitment %q", commitment))
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
	if kind := inform.Kind(); kind == performatives.Result || kind == performatives.Progress {
		return t.namesCommitment(inform)
	}
	return t.judgesDispute()
}

// namesCommitment refuses a result or a progress that names an obligation and not its commitment: it would deliver nothing.
func (t *Command) namesCommitment(inform *performatives.InformBody) error {
	var data struct {
		Obligation jsontext.Value `json:"obligation"`
	}
	if t.event.Replayed || json.Unmarshal(inform.Data, &data) != nil || data.Obligation == nil {
		return nil //nolint:nilerr // data that is no object names no obligation
	}
	return RefuseSchema(Fault{Path: "/data/commitmentId", Rule: "required", Message: "data.commitmentId is required beside data.obligation"})
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

// EntriesOf are the entries that made an obligation what it is: those of its commitment, and those
// about it, in order.
func (s *State) EntriesOf(o *Obligation) []uint64 {
	var all []uint64
	if c, ok := s.Commitment(o.Commitment); ok {
		all = append(all, c.entries...)
	}
	for at, key := range s.aboutObligation.All() {
		if key == o.key() {
			if n, err := strconv.ParseUint(at, 10, 64); err == nil {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n uint64) bool { return n == 0 })
}
