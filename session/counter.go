package session

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Counter, deed{refers: counters, happens: countered, answers: answersReference, agrees: agreesToTerms})

// counters judges a COUNTER: of an invitation it is a new invitation with the
// duty to answer swapped, and only the two whom it is between may make one; of
// a commitment it puts a proposal in its place.
func counters(t *Command) error {
	body := t.Message.Body.(*performatives.CounterBody) //nolint:errcheck,forcetypeassert // its act says so
	if err := t.answers(body.ReferenceID); err != nil {
		return err
	}
	o := &Offer{
		ID: body.ProposalID, Kind: aProposal, Side: t.Side, By: t.From.Agent,
		Supersedes: t.Offer.ID, Line: t.Offer.Line,
		Type: cmp.Or(body.Type, t.Offer.Type), Subject: cmp.Or(body.Subject, t.Offer.Subject),
		Schema: t.SchemaFor(t.Message), Terms: body.Terms, Body: t.Message.RawBody, Expires: t.until(body.ValidUntil),
	}
	if t.Offer.IsCommitment() {
		o.Line = o.ID
	}
	if t.Phase != Invited {
		return t.offer(o)
	}
	o.Kind = anInvitation
	return t.reinvites(o)
}

// reinvites judges the new terms of an invitation like those of the first.
func (t *Command) reinvites(o *Offer) error {
	t.offering = o
	if err := t.alive(o.Expires); err != nil && !t.event.Replayed {
		return err
	}
	if err := t.newID(o.ID); err != nil {
		return err
	}
	if err := t.fitsSchema(); err != nil {
		return err
	}
	inv, err := readInvitation(t.Message, o.Terms)
	if err != nil {
		return err
	}
	for _, a := range inv.Invitees {
		if p, ok := t.parties.Get(a); !ok || p.Role > Invitee {
			return RefuseSchema(Fault{Path: "/terms/participants", Rule: "participant", Message: "a COUNTER of an invitation is between the same two principals"})
		}
	}
	inv.Invitees = t.Agreed.Invitees
	t.opening = &inv
	mode, known := t.modes[inv.Mode]
	if !known || t.principals < mode.Min || t.principals > mode.Max {
		return Violation("unknown_mode", "there is no mode %q for two principals", inv.Mode)
	}
	t.Mode = mode
	if err := t.readPolicy(); err != nil {
		return err
	}
	if err := t.arbiterKnown(); err != nil {
		return err
	}
	return t.unfit()
}

// agreesToTerms limits a COUNTER by its own terms, in the thread that it answers and the one
// that it makes.
func agreesToTerms(t *Command, _ *escalation.Bound) (escalation.Pledge, bool) {
	body := t.Message.Body.(*performatives.CounterBody) //nolint:errcheck,forcetypeassert // its act says so
	p := escalation.Pledge{Bodies: []jsontext.Value{t.Message.RawBody}, Terms: performatives.HashOf(body.Terms)}
	if o := t.Offer; o != nil && t.Phase != Invited {
		own := &Offer{
			Type: cmp.Or(body.Type, o.Type), Subject: cmp.Or(body.Subject, o.Subject), Schema: t.SchemaFor(t.Message), Body: t.Message.RawBody,
			Line: o.Line, Side: t.Side, To: t.Message.Recipient,
		}
		if p.Frame = t.frameOf(own, t.Side); o.IsProposal() {
			p.Threads = []escalation.Thread{t.threadOf(o), t.threadOf(own)}
			p.Frame.Category = cmp.Or(p.Frame.Category, t.frameOf(o, t.Side).Category)
		}
	}
	return p, true
}

func countered(t *Command) {
	switch {
	case t.Phase == Invited:
		t.SetStatus(t.Offer.ID, Countered)
		t.answered(t.Side)
		t.invitation = t.offering
		t.pinArbiter()
		t.agree(t.Now)
	case t.Offer.IsProposal() && t.Mode.Effects[performatives.Counter] != nil:
		t.Mode.Effects[performatives.Counter](t)
	default:
		t.SetStatus(t.Offer.ID, Countered)
	}
	t.put(t.offering)
}
