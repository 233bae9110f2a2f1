// Package api is the broker's public contract: subjects, verbs, and the JSON of
// requests, replies and refusals.
//
// Every verb is one row of a table, with the types of its request and reply:
//
//	subject := api.Call("agent://acme.com/alpha", api.SessionGet.Name)
//	fmt.Println(subject) // asp.agent.acme_com~alpha.api.session.get
//	for _, v := range api.Verbs() {
//		if v.Role == api.Operator && v.Access == api.Read {
//			fmt.Println(v.Name, v.Request.Name(), v.Reply.Name())
//		}
//	}
//
// These hold:
//   - A gateway serves what [Verbs] lists and nothing else; [VerbOf] makes the
//     compiler check the types at both ends.
//   - docs/PROTOCOL.md §9 has the same verbs, in the same order, with the same
//     members; a test compares them.
//   - A [SessionView] is derived from a session.State and a time alone, and has
//     the members of the session's mode without knowing any mode.
//   - The package is pure: no IO, no clock.
package api
