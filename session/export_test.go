package session

import "github.com/parley-asp/parley/performatives"

// OfDelegations reports whether a state allows the answers to a delegation, and
// OfQuestions whether it allows a WITHDRAW of a clarification.
func OfDelegations(p Phase) bool { return ofDelegation[p] }

func OfQuestions(p Phase) bool { return ofQuestion[p] }

// Leads says in words where a transition leads, and lists the states that it may
// lead to, the state itself included where it may stay.
func Leads(p Phase, act performatives.Performative) (words string, to []Phase) {
	switch a := lifecycle[p][act]; {
	case !a.allowed:
		return "", nil
	case a.kind == stays:
		return a.label, []Phase{p}
	case a.kind == byCommitments:
		return a.label, []Phase{p, Executing, Conversing}
	case a.kind == resumes:
		return a.label, pausable()
	case a.when != nil:
		return a.label, []Phase{p, a.to}
	default:
		return a.to.String(), []Phase{a.to}
	}
}

// pausable are the states that allow ESCALATE.
func pausable() []Phase {
	var from []Phase
	for _, p := range Phases() {
		if p.Allows(performatives.Escalate) {
			from = append(from, p)
		}
	}
	return from
}
