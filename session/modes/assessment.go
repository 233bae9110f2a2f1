package modes

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An assessment goes with every turn but the answer to a question.
type assessment struct {
	reasoning string
	ownUser   string // the role that the sender suggests for its own user
	faults    []session.Fault
}

var userRoles = map[string]bool{"agent": true, "patient": true, "peer": true}

func assessed(t *session.Command) error {
	if !takesTurn(t) || t.Act == asp.Inform {
		return nil
	}
	if a := readAssessment(t.Message.Body); len(a.faults) > 0 {
		return session.RefuseSchema(a.faults...)
	}
	return nil
}

// needsAssessment: every turn but an answer carries one.
func needsAssessment(s *session.State, act asp.Performative, reference string) map[string]any {
	_, ofDelegation := s.Grant(delegation.ID(reference))
	if turn := act == asp.Propose || act == asp.Counter || act == asp.Clarify || act == asp.Accept || act == asp.Reject; !turn || ofDelegation || s.Phase == session.Invited {
		return nil
	}
	roles := map[string]string{"ownUser": "peer", "otherUser": "peer"}
	return map[string]any{"assessment": map[string]any{"reasoning": "…", "suggestedRoles": roles}}
}

// readAssessment reads {reasoning, suggestedRoles {ownUser, otherUser}}, and
// names by its path all that is missing or wrong.
func readAssessment(body asp.Body) (a assessment) {
	var given asp.Object
	if b, ok := body.(asp.Remarked); ok {
		given = b.Remark().Assessment
	}
	whole := a.members("", given)
	if whole == nil {
		return a
	}
	a.reasoning = a.text("/reasoning", whole["reasoning"])
	roles := a.members("/suggestedRoles", whole["suggestedRoles"])
	if roles == nil {
		return a
	}
	a.ownUser = a.role("/suggestedRoles/ownUser", roles["ownUser"])
	a.role("/suggestedRoles/otherUser", roles["otherUser"])
	return a
}

func (a *assessment) fault(path, rule, why string) {
	a.faults = append(a.faults, session.Fault{Path: "/assessment" + path, Rule: rule, Message: "assessment" + strings.ReplaceAll(path, "/", ".") + " " + why})
}

// members are those of an object; nil when it is none.
func (a *assessment) members(path string, raw jsontext.Value) map[string]jsontext.Value {
	found := map[string]jsontext.Value{}
	switch {
	case len(raw) == 0:
		a.fault(path, "required", "is required with every turn of bilateral/1")
	case raw.Kind() != '{' || json.Unmarshal(raw, &found) != nil:
		a.fault(path, "type", "must be an object")
	default:
		return found
	}
	return nil
}

func (a *assessment) text(path string, raw jsontext.Value) (text string) {
	switch {
	case len(raw) == 0:
		a.fault(path, "required", "is required")
	case raw.Kind() != '"' || json.Unmarshal(raw, &text) != nil:
		a.fault(path, "type", "must be a string")
	case text == "":
		a.fault(path, "minLength", "must not be empty")
	}
	return text
}

func (a *assessment) role(path string, raw jsontext.Value) string {
	before := len(a.faults)
	role := a.text(path, raw)
	if len(a.faults) == before && !userRoles[role] {
		a.fault(path, "enum", "must be one of agent, patient, peer")
	}
	return role
}
