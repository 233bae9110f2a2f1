package session

import act "github.com/parley-asp/parley/performatives"

// A Phase is the state that a session is in. Its name on the wire is in upper case.
type Phase uint8

// The states of PROTOCOL.md §5. The zero Phase is a session that does not exist yet.
const (
	Idle Phase = iota
	Invited
	Introduced
	Conversing
	Agreeing
	Executing
	Escalated
	Closed
	Failed
	phases
)

// lifecycle says which acts are allowed in which state, and where they lead.
// A hole is a refusal: wrong_state, or session_escalated while ESCALATED.
// A mode may refuse more or carry a session further forward, never the reverse.
var lifecycle = [phases][act.Acts]transition{
	Idle: {act.Propose: to(Invited)}, // of type session-invitation only
	Invited: {
		act.Accept: once(everyInviteeAccepted, Introduced), act.Reject: to(Failed),
		act.Counter: stay, act.Withdraw: to(Closed),
	},
	Introduced: {
		act.Propose: to(Conversing), act.Query: to(Conversing), act.Inform: to(Conversing), act.Observe: to(Conversing),
		act.Delegate: to(Conversing), act.Escalate: to(Escalated), act.Close: to(Closed),
	},
	Conversing: {
		act.Propose: stay, act.Counter: stay, act.Accept: stay, act.Reject: stay, act.Inform: stay, act.Query: stay, act.Clarify: stay,
		act.Observe: stay, act.Delegate: stay, act.Withdraw: stay,
		act.Commit: to(Agreeing), act.Escalate: to(Escalated), act.Close: to(Closed),
	},
	Agreeing: { // ACCEPT, REJECT, COUNTER and WITHDRAW are of a commitment
		act.Accept: asCommitmentsStand, act.Reject: asCommitmentsStand, act.Counter: asCommitmentsStand, act.Withdraw: asCommitmentsStand,
		act.Commit: stay, act.Inform: stay, act.Query: stay, act.Clarify: stay, act.Observe: stay, act.Delegate: stay,
		act.Escalate: to(Escalated), act.Close: to(Closed),
	},
	Executing: { // PROPOSE is of an amendment; ACCEPT, REJECT and WITHDRAW are of one, or of what was delivered
		act.Propose: stay, act.Accept: stay, act.Reject: stay, act.Withdraw: stay,
		act.Inform: stay, act.Query: stay, act.Clarify: stay, act.Observe: stay, act.Delegate: stay,
		act.Escalate: to(Escalated), act.Close: onceReleased,
	},
	Escalated: {act.Inform: resume, act.Close: to(Closed)}, // only of a human who may decide
	Closed:    {},
	Failed:    {},
}

// ofDelegation says in which states an ACCEPT, REJECT or WITHDRAW of a delegation is
// allowed, and ofQuestion in which a WITHDRAW of a clarification is; both leave the
// state as it is.
var (
	ofDelegation = [phases]bool{Conversing: true, Agreeing: true, Executing: true}
	ofQuestion   = [phases]bool{Conversing: true, Agreeing: true, Executing: true}
)
