package modes

import (
	"github.com/go-json-experiment/json"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// assessment goes with every turn but the answer to a question.
type assessment struct {
	Reasoning      string `json:"reasoning"`
	SuggestedRoles struct {
		OwnUser   string `json:"ownUser"`
		OtherUser string `json:"otherUser"`
	} `json:"suggestedRoles"`
}

var roleNames = map[string]bool{"agent": true, "patient": true, "peer": true}

func assessed(t *session.Turn) error {
	if !takesTurn(t) || t.Act == asp.Inform {
		return nil
	}
	_, faults := readAssessment(t)
	if len(faults) > 0 {
		return session.RefuseSchema(faults...)
	}
	return nil
}

func readAssessment(t *session.Turn) (a assessment, faults []session.Fault) {
	raw := remarks(t.Message.Body).Assessment
	missing := func(path, rule, why string) {
		faults = append(faults, session.Fault{Path: "/assessment" + path, Rule: rule, Message: why})
	}
	if len(raw) == 0 {
		missing("", "required", "assessment is required with every turn in mode bilateral/1")
		return a, faults
	}
	if json.Unmarshal(raw, &a) != nil {
		missing("", "type", "assessment is {reasoning, suggestedRoles {ownUser, otherUser}}")
		return a, faults
	}
	if a.Reasoning == "" {
		missing("/reasoning", "required", "assessment.reasoning is required")
	}
	for name, role := range map[string]string{"ownUser": a.SuggestedRoles.OwnUser, "otherUser": a.SuggestedRoles.OtherUser} {
		switch {
		case role == "":
			missing("/suggestedRoles/"+name, "required", "assessment.suggestedRoles."+name+" is required")
		case !roleNames[role]:
			missing("/suggestedRoles/"+name, "enum", "assessment.suggestedRoles."+name+" is agent, patient or peer")
		}
	}
	session.SortFaults(faults)
	return a, faults
}

func remarks(b asp.Body) asp.Remarks {
	switch b := b.(type) {
	case *asp.ProposeBody:
		return b.Remarks
	case *asp.CounterBody:
		return b.Remarks
	case *asp.AcceptBody:
		return b.Remarks
	case *asp.RejectBody:
		return b.Remarks
	case *asp.ClarifyBody:
		return b.Remarks
	}
	return asp.Remarks{}
}
