package broker_test

import (
	"fmt"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A stranger's question, read or submitted, has no session read: so that its time does not tell
// one of others, however long, from one that is not there (PROTOCOL.md §9).
func TestStrangersHaveNothingRead(t *testing.T) {
	t.Parallel()
	l := limits(t, broker.Limits{})
	id, none := newID(), newID()
	l.heard(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.heard(l.says(id, alpha, "DELEGATE", `{"targetAgent":"agent://law.org/d","scope":"x","authority":"limited"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	if l.InMemory(id) {
		t.Fatal("the session is in memory before anybody has asked")
	}
	for _, stranger := range []performatives.Agent{"agent://evil.example/eve", "agent://acme.com/other", "human://evil.example/mallory"} {
		for _, of := range []performatives.SessionID{id, none} {
			for _, verb := range []string{api.SessionGet.Name, api.SessionMessages.Name} {
				l.refused(l.ask(api.Call(stranger, verb), fmt.Appendf(nil, `{"sessionId":%q}`, of)), session.UnknownSession)
			}
			l.refused(l.says(of, stranger, "ACCEPT", `{"referenceId":"inv"}`), session.UnknownSession)
			l.refused(l.says(of, stranger, "PROPOSE", `{"proposalId":"p","type":"x","subject":"x","terms":{}}`), session.UnknownSession)
			l.refused(l.says(of, stranger, "CLOSE", `{"outcome":"no such"}`), session.SchemaInvalid)
		}
	}
	if l.InMemory(id) {
		t.Error("a stranger had the session read")
	}
	// Whose business it is, finds it.
	for _, party := range []performatives.Agent{alpha, beta} {
		l.heard(l.ask(api.Call(party, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
	}
	if !l.InMemory(id) {
		t.Error("it was not read for those who take part")
	}
	l.heard(l.says(id, "agent://law.org/d", "OBSERVE", `{"subject":"x"}`))
	l.refused(l.says(id, "agent://evil.example/eve", "PROPOSE", invitation(beta)), session.UnknownSession)
	// A human who may decide is named by nobody before it speaks.
	l.heard(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	l.heard(l.ask(api.Call("human://acme.com/alice", api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
}
