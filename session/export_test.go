package session

import "github.com/parley-asp/parley/performatives"

// Heard tells whether the lifecycle table has a transition for the act.
func Heard(p Phase, act performatives.Performative) bool { return lifecycle[p][act].heard }

// OfDelegations tells whether a state hears the answers to a delegation, and
// OfQuestions whether it hears a WITHDRAW of a clarification.
func OfDelegations(p Phase) bool { return ofDelegation[p] }

func OfQuestions(p Phase) bool { return ofQuestion[p] }

// Leads says in words where a transition leads, and lists the states that it may
// lead to, the state itself included where it may stay.
func Leads(p Phase, act performatives.Performative) (words string, to []Phase) {
	switch a := lifecycle[p][act]; {
	case !a.heard:
		return "", nil
	case a.kind == stays:
		return a.label, []Phase{p}
	case a.kind == settles:
		return a.label, []Phase{p, Executing, Conversing}
	case a.kind == resumes:
		return a.label, pausable()
	case a.when != nil:
		return a.label, []Phase{p, a.to}
	default:
		return a.to.String(), []Phase{a.to}
	}
}

// pausable are the states that hear ESCALATE.
func pausable() []Phase {
	var from []Phase
	for _, p := range Phases() {
		if lifecycle[p][performatives.Escalate].heard {
			from = append(from, p)
		}
	}
	return from
}
