package session

// Before reports whether the session was opened under an earlier format of transcripts,
// and so keeps the rules of that format: a transcript replays as it was accepted.
//
// These rules hold since format 2:
//   - An answer is one of the options of its question.
//   - A modification changes something.
//   - A denial binds.
//   - An amount that cannot be read exceeds a bound, in a PROPOSE too.
//   - Nobody delegates to a human who decides for another party.
//   - A delegation that was not accepted keeps no other side from delegating to the same
//     principal, who accepts one of them.
//   - A query is a turn of who is to answer it.
//   - A party's kind stays as it was pinned.
//   - bilateral/1 ends with a rejection if its last turn is a REJECT.
//   - A Minimal agent sends, and is sent, what its conformance level has.
//   - convergent/1 refuses ids in which nothing is visible, and actions that contradict
//     the outcome.
//   - In binding/1 a document that an act carries in OAP's form is signed by the party's own
//     key, and says what the act says.
//
// These rules hold since format 3:
//   - A ruling's bounds hold for every PROPOSE, also for one that names nothing of them.
//   - An amount without a path is the most of every amount in the terms, wherever it stands.
//   - A path that can mean two places, such as a.b for {"a":{"b":1},"a.b":2}, has no readable amount.
//   - No offer has terms.private.
//   - A ruling may be narrowed to a thread.
//   - Only the options of a strict question bind its answer.
//   - A limited delegate does not ESCALATE.
//   - A delegation for a proposal reaches what counters it, not what it counters nor its siblings.
//   - In asp/1 a PROPOSE supersedes what is open in its thread.
//   - A session's duration counts from the acceptance of its invitation.
//   - The maxTransactionValue of a card binds its agent.
//   - An offer whose validUntil has passed is refused.
//
// These rules hold since format 4:
//   - In asp/1 an accepted proposal makes no agreement; the accepted COMMIT that carries it out
//     does, or a CLOSE with the outcome completed.
//   - An agreement is published beyond digests only if each of its parties has consented.
//   - An approval of exact terms leaves no more to an escrow than the amount at stake.
//   - A standby may take a turn before the session ends by itself.
//   - In bilateral/1 a side that was asked about its offer may ACCEPT it.
//
// These rules hold since format 5:
//   - A human who may decide joins when it acts, and until then the route has a digest of its name.
//
// These rules hold since format 6:
//   - In bilateral/1 an ACCEPT of the other side's offer makes an agreement; where people confirm
//     it, the last confirmation does. policy.publish is taken there, too.
//
// These rules hold since format 7:
//   - What was agreed is carried out in EXECUTING (execution.go), which lasts until nothing is due.
//   - policy.execution and policy.arbiter are parameters of every mode.
//   - The obligations of a COMMIT are of its parties, and have an id each.
//   - Nobody asks about an invitation that was accepted.
//   - An INFORM event is the broker's.
//
// These rules hold since format 8:
//   - A standby's INFORM answers a question or a query.
//   - In convergent/1 a COMMIT after a terminal rejection names no offer that is over.
//
// Rules that only refuse a new act, and change no state, need no format: a replay skips them (Event.Replayed).
//   - An invitation whose validUntil has passed is refused (propose.go, counter.go).
//   - An approval of exact terms is of what the proposal says besides them, and of one agreement (pledge.go); what a commitment
//     adds to them is read strictly (escalation/owed.go).
//   - An amendment leaves an obligation to its party (amendment.go).
//   - A COMMIT changes no agreed term; where nobody accepts it, it obliges its sender only (commit.go).
//   - Rulings hold for what commitments and amendments add, and denials for what is offered (pledge.go).
//   - A ceiling is for each amount that the terms name (ceiling.go, escalation/commitment.go).
//   - A delegate that is limited to a proposal keeps to what that obliges (execution.go).
//   - A delivery names its commitment (execution.go).
//   - Nobody of the arbiter's organisation acts for a side (delegate.go).
func (t *Command) Before(format int) bool {
	policy := t.Policy
	if t.Phase == Idle {
		policy = t.event.Policy
	}
	return policy.Format < format
}
