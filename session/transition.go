package session

import (
	"slices"

	"github.com/parley-asp/parley/performatives"
)

var phaseNames = [phases]string{
	"IDLE", "INVITED", "INTRODUCED", "CONVERSING", "AGREEING", "EXECUTING", "ESCALATED", "CLOSED", "FAILED",
}

func (p Phase) String() string { return phaseNames[p] }

// MarshalText writes the state's name on the wire.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name of a state; an unknown one reads as IDLE.
func (p *Phase) UnmarshalText(text []byte) error {
	*p = Phase(max(0, slices.Index(phaseNames[:], string(text)))) //nolint:gosec // below phases
	return nil
}

// ParsePhase finds the state of a name.
func ParsePhase(name string) (Phase, bool) {
	i := slices.Index(phaseNames[:], name)
	return Phase(max(i, 0)), i >= 0 //nolint:gosec // below phases
}

// Phases are all of them, IDLE first.
func Phases() []Phase {
	all := make([]Phase, phases)
	for p := range all {
		all[p] = Phase(p)
	}
	return all
}

// Over reports whether no act is allowed any more.
func (p Phase) Over() bool { return p == Closed || p == Failed }

// A transition is where an allowed act leads. The zero transition is a hole in the table.
type transition struct {
	to      Phase
	when    func(*State) bool // nil is at once; until it holds, the state stays
	label   string            // for pictures, where the target is not one fixed state
	allowed bool
	kind    transitionKind
}

type transitionKind uint8

const (
	moves transitionKind = iota
	stays
	byCommitments // to where the commitments stand
	resumes       // to where the session was paused
)

var (
	stay               = transition{allowed: true, kind: stays, label: "stays"}
	asCommitmentsStand = transition{allowed: true, kind: byCommitments, label: "EXECUTING once every open one is accepted, CONVERSING once none is open or accepted"}
	onceReleased       = transition{allowed: true, to: Closed, when: released, label: "CLOSED once nothing is due, or every party has said so"}
	resume             = transition{allowed: true, kind: resumes, when: decided, label: "the state it was paused from, once enough have decided"}
)

func to(p Phase) transition { return transition{allowed: true, to: p} }

func once(when func(*State) bool, p Phase) transition {
	return transition{allowed: true, to: p, when: when, label: p.String() + " once every invited principal accepted"}
}

// follow is the state after an act whose effects s already shows.
func (a transition) follow(s *State) Phase {
	switch {
	case a.kind == stays, a.when != nil && !a.when(s):
		return s.Phase
	case a.kind == resumes:
		return s.resumeTo
	case a.kind == byCommitments:
		return s.commitmentsStand()
	}
	return a.to
}

// commitmentsStand is PROTOCOL.md §5, AGREEING.
func (s *State) commitmentsStand() Phase {
	switch {
	case s.openCommitments > 0:
		return Agreeing
	case s.acceptedCommitments > 0:
		return Executing
	}
	return Conversing
}

// decided reports that no escalation pauses the session.
func decided(s *State) bool { return s.Escalation() == nil }

func everyInviteeAccepted(s *State) bool {
	return s.invitation.acceptedBy.Len() >= s.principals-1
}

// Allows reports whether the state allows an act.
func (p Phase) Allows(act performatives.Performative) bool { return lifecycle[p][act].allowed }

// Acts lists the acts that the state allows.
func (p Phase) Acts() (acts []performatives.Performative) {
	for _, act := range performatives.All() {
		if p.Allows(act) {
			acts = append(acts, act)
		}
	}
	return acts
}
