package vectors

import (
	"fmt"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// tell is an INFORM of a type.
func (t *table) tell(from performatives.Agent, kind, data string, args ...any) performatives.MessageID {
	t.say(from, &performatives.InformBody{Type: kind, Data: fmt.Appendf(nil, data, args...)})
	return t.last()
}

func (t *table) accept(from performatives.Agent, id string, assessment string) {
	body := &performatives.AcceptBody{ReferenceID: id}
	if assessment != "" {
		body.Assessment = performatives.Object(assessment)
	}
	t.say(from, body)
}

// hash is of an entry.
func (t *table) hash(sequence int) performatives.Hash {
	if sequence < len(t.entries) {
		return t.entries[sequence].Stamp.Hash
	}
	return performatives.NoHash
}

// by is a deadline, some time after the table was opened.
func (t *table) by(after time.Duration) string {
	return start.Add(time.Duration(t.number)*time.Hour + after).Format(time.RFC3339)
}

// delivered is a purchase in asp/1: half of it comes in time, the rest after a breach; what is cracked is disputed,
// and an arbiter decides.
func delivered(number int) (*table, error) {
	t := opened(number, fmt.Sprintf(`{"participants":[%q],"policy":{"arbiter":%q},"purpose":"buy cups"}`, seller, arbiter))
	t.accept(seller, "invitation", "")
	t.say(seller, &performatives.ProposeBody{ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(`{"currency":"EUR","price":950,"quantity":100}`)})
	t.accept(buyer, "offer_1", "")
	due, quantity, pays := start.Add(time.Duration(number)*time.Hour+time.Minute), 100.0, 950.0
	t.say(seller, &performatives.CommitBody{CommitmentID: "deal_1", ReferenceID: "offer_1", Terms: &performatives.CommitmentTerms{
		Obligations: []performatives.Obligation{
			{ID: "cups", Party: seller, Action: "deliver cups", Deadline: &due, Quantity: &quantity, Unit: "boxes"},
			{Party: buyer, Action: "pay", Amount: &performatives.Worth{Value: pays, Currency: "EUR"}, VerificationMethod: "bank statement"},
		},
	}})
	t.accept(buyer, "deal_1", "")
	half := t.tell(seller, performatives.Result, `{"commitmentId":"deal_1","obligation":"cups","quantity":50,"unit":"boxes"}`)
	t.accept(buyer, string(half), "")
	t.enters(time.Minute)
	rest := t.tell(seller, performatives.Result, `{"commitmentId":"deal_1","obligation":"cups"}`)
	t.tell(buyer, performatives.Dispute, `{"disputeId":"cracked","subject":%q,"ground":"mismatch","claim":"ten boxes are cracked","severity":2}`, t.hash(len(t.entries)-1))
	t.tell(seller, performatives.Reply, `{"disputeId":"cracked","position":"deny"}`)
	t.tell(arbiter, performatives.Resolution, `{"disputeId":"cracked","decision":"split","reason":"five boxes were packed badly","award":{"refund":47.5}}`)
	t.accept(buyer, string(rest), "")
	paid := t.tell(buyer, performatives.Result, `{"commitmentId":"deal_1","obligation":1}`)
	t.accept(seller, string(paid), "")
	t.say(seller, &performatives.CloseBody{Outcome: performatives.Completed, Summary: "delivered and paid"})
	return t, t.err
}

// converged is a deal of three in convergent/1: a delivery counts as accepted since nobody answers, obligations are
// amended and waived, a dispute ends by an offer, and the rest is released by all.
func converged(number int) (*table, error) {
	t := opened(number, fmt.Sprintf(`{"mode":"convergent/1","participants":[%q,%q],"purpose":"cups, and who brings them"}`, seller, carrier))
	t.accept(seller, "invitation", "")
	t.accept(carrier, "invitation", "")
	t.say(seller, &performatives.ProposeBody{ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(fmt.Sprintf(
		`{"price":60,"obligations":[{"party":%q,"action":"pack","quantity":0.3,"unit":"t","acceptanceWindowMs":60000},`+
			`{"id":"move","party":%q,"action":"move","deadline":%q},{"id":"pay","party":%q,"action":"pay","verificationMethod":"bank statement"}]}`,
		seller, carrier, t.by(time.Hour), buyer))})
	t.accept(buyer, "offer_1", "")
	t.accept(carrier, "offer_1", "")
	t.accept(seller, "offer_1", "")
	t.say(buyer, &performatives.CommitBody{CommitmentID: "deal_1", ReferenceID: "offer_1"})
	some := t.tell(seller, performatives.Result, `{"commitmentId":"offer_1","obligation":"0","quantity":0.1}`)
	t.accept(buyer, string(some), "")
	t.tell(seller, performatives.Result, `{"commitmentId":"offer_1","obligation":0,"quantity":0.1}`)
	t.tell(seller, performatives.Result, `{"commitmentId":"offer_1","obligation":0,"quantity":0.2}`)
	t.tell(carrier, performatives.Progress, `{"commitmentId":"offer_1","obligation":"move","data":"on the road"}`)
	t.enters(time.Minute)
	t.say(buyer, &performatives.ProposeBody{
		ProposalID: "change_1", Type: performatives.Amendment, ReferenceID: "offer_1", Subject: "two days more", Terms: performatives.Object(fmt.Sprintf(
			`{"obligations":[{"id":"move","party":%q,"action":"move, and unload","deadline":%q,"quantity":2},{"id":"store","party":%q,"action":"store","deadline":%q}]}`,
			carrier, t.by(48*time.Hour), carrier, t.by(72*time.Hour))),
	})
	t.accept(carrier, "change_1", "")
	t.accept(seller, "change_1", "")
	moved := t.tell(carrier, performatives.Result, `{"commitmentId":"offer_1","obligation":"move","quantity":1}`)
	t.say(seller, &performatives.RejectBody{ReferenceID: string(moved), Code: "incomplete", Reason: "nothing is unloaded"})
	t.tell(carrier, performatives.Result, `{"commitmentId":"offer_1","obligation":"move","quantity":1}`)
	t.tell(seller, performatives.Dispute, `{"disputeId":"wet","subject":%q,"ground":"other","claim":"it stood in the rain","severity":1}`, t.hash(len(t.entries)-1))
	offer := t.tell(carrier, performatives.Reply, `{"disputeId":"wet","position":"offer","remedy":"a tenth off"}`)
	t.accept(seller, string(offer), "")
	t.tell(seller, performatives.Waiver, `{"commitmentId":"offer_1","obligation":"store","reason":"no room is needed"}`)
	for _, a := range []performatives.Agent{buyer, seller, carrier} {
		t.say(a, &performatives.CloseBody{})
	}
	return t, t.err
}

// bound is a deal in binding/1 that is carried out in the session, and is not over: a deadline has passed, and the
// transcript alone decides the dispute about it.
func bound(number int) (*table, error) {
	t := opened(number, fmt.Sprintf(`{"mode":"binding/1","participants":[%q],"policy":{"execution":true,"ids":"oap"},"purpose":"buy cups"}`, seller))
	t.accept(seller, "invitation", "")
	offer := t.binds(&performatives.ProposeBody{ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(fmt.Sprintf(
		`{"price":60,"obligations":[{"party":%q,"action":"deliver cups","deadline":%q},{"party":%q,"action":"say thanks"}]}`, seller, t.by(time.Minute), buyer))})
	t.say(buyer, offer)
	accept := &performatives.AcceptBody{ReferenceID: "offer_1"}
	accept.AgreementSignature = t.signs(seller, offer)
	t.say(seller, accept)
	t.enters(time.Minute)
	t.tell(buyer, performatives.Dispute, `{"disputeId":"nothing_came","subject":%q,"ground":"non-delivery","claim":"there are no cups","severity":5}`, t.hash(len(t.entries)-1))
	t.enters(0)
	return t, t.err
}

// confirmed is a deal in bilateral/1 that people confirm, and that is carried out; disputes about it are
// conceded, given up, and ended by people.
func confirmed(number int) (*table, error) {
	t := opened(number, fmt.Sprintf(`{"mode":"bilateral/1","participants":[%q],"policy":{"confirm":true,"execution":true},"purpose":"buy cups"}`, seller))
	t.accept(seller, "invitation", "")
	const assessment = `{"reasoning":"it fits","suggestedRoles":{"otherUser":"peer","ownUser":"peer"}}`
	t.say(buyer, &performatives.ProposeBody{
		ProposalID: "offer_1", Type: "purchase", Subject: "cups", Remarks: performatives.Remarks{Assessment: performatives.Object(assessment)},
		Terms: performatives.Object(fmt.Sprintf(`{"price":60,"obligations":[{"party":%q,"action":"deliver cups","quantity":2.5e-7}]}`, seller)),
	})
	asked := []performatives.MessageID{t.last()}
	t.accept(seller, "offer_1", assessment)
	asked = append(asked, t.last())
	t.tell(alice, performatives.Resolution, `{"escalationId":%q,"decision":"approved"}`, asked[0])
	t.tell(bob, performatives.Resolution, `{"escalationId":%q,"decision":"approved"}`, asked[1])
	t.tell(seller, performatives.Result, `{"commitmentId":"offer_1","obligation":"0"}`)
	t.tell(buyer, performatives.Dispute, `{"disputeId":"chipped","subject":%q,"ground":"mismatch","claim":"all are chipped","severity":3}`, t.hash(len(t.entries)-1))
	t.tell(seller, performatives.Reply, `{"disputeId":"chipped","position":"concede"}`)
	again := t.tell(seller, performatives.Result, `{"commitmentId":"offer_1","obligation":"0"}`)
	t.tell(buyer, performatives.Dispute, `{"disputeId":"dull","subject":%q,"ground":"mismatch","claim":"they are dull","severity":1}`, t.hash(len(t.entries)-1))
	t.tell(alice, performatives.Reply, `{"disputeId":"dull","position":"concede"}`)
	t.tell(buyer, performatives.Dispute, `{"disputeId":"slow","subject":%q,"ground":"other","claim":"it took too long","severity":2}`, t.hash(len(t.entries)-1))
	remedy := t.tell(bob, performatives.Reply, `{"disputeId":"slow","position":"offer","remedy":"the next ones sooner"}`)
	t.accept(alice, string(remedy), "")
	t.accept(buyer, string(again), "")
	t.say(buyer, &performatives.CloseBody{Outcome: performatives.Completed})
	return t, t.err
}
