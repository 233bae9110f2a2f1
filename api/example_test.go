package api_test

import (
	"fmt"

	"github.com/parley-asp/parley/api"
)

// What the package's comment shows.
func Example() {
	subject := api.Call("agent://acme.com/alpha", api.SessionGet.Name)
	fmt.Println(subject)
	for _, v := range api.Verbs() {
		if v.Role == api.Operator && v.Access == api.Read {
			fmt.Println(v.Name, v.Request.Name(), v.Reply.Name())
		}
	}
	// Output:
	// asp.agent.acme_com~alpha.api.session.get
	// token.list ListTokens Tokens
	// audit.sessions ListAudit AuditedSessions
	// audit.messages AuditTranscript Stored
	// audit.session AuditRef Held
}
