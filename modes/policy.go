package modes

import (
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/session"
)

// readPolicy reads a mode's parameters: an unknown one is a mode_violation, an
// ill-typed one schema_invalid.
func readPolicy[P any](policy jsontext.Value) (p P, err error) {
	if len(policy) == 0 {
		return p, nil
	}
	if json.Unmarshal(policy, &p) != nil {
		return p, policyFault("", "type", "a parameter of the mode has the wrong type")
	}
	if json.Unmarshal(policy, &p, json.RejectUnknownMembers(true)) != nil {
		return p, session.Violation("policy", "the policy has a parameter that the mode does not know")
	}
	return p, nil
}

func policyFault(name, rule, why string) error {
	path := "/terms/policy"
	if name != "" {
		path += "/" + name
	}
	return session.RefuseSchema(session.Fault{Path: path, Rule: rule, Message: why})
}

// wholeNumber reads an optional whole number; absent is 0.
func wholeNumber(name string, n *float64, atLeast int) (int, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n != math.Trunc(*n) || *n < float64(atLeast) || *n > math.MaxInt32*1000.0:
		return 0, policyFault(name, "range", "want a whole number that makes sense")
	}
	return int(*n), nil
}
