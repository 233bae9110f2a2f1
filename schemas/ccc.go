package schemas

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

//go:embed oap/ccc.json
var cccSchema []byte

var ccc = sync.OnceValue(func() *document { return mustCompile(cccSchema) })

// ValidateCCC returns the faults of a Confidentiality and Compliance Context by OAP's schema
// https://openagentprotocol.eu/schemas/v1.0/oap-ccc.schema.json; none if there is no context.
func ValidateCCC(context jsontext.Value) []Fault {
	if len(context) == 0 {
		return nil
	}
	v, err := decode(context)
	if err != nil {
		return []Fault{{Rule: "type", Message: "ccc is not JSON"}}
	}
	return report(ccc().faults(v, ""))
}
