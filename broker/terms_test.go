package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

func agreeing(schema string, who ...performatives.Agent) string {
	return strings.Replace(invitation(who...), `"terms":{`, `"terms":{"schemas":["`+schema+`"],`, 1)
}

func (l line) opens(schema string) performatives.SessionID {
	l.Helper()
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", agreeing(schema, beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	return id
}

func offer(schema, id, terms string) string {
	return fmt.Sprintf(`{"proposalId":%q,"type":"service-agreement","subject":"x","schema":%q,"terms":%s}`, id, schema, terms)
}

func putting(name, schema string) []byte {
	return []byte(`{"name":"` + name + `","schema":` + schema + `}`)
}

// Terms that would multiply the work of a small schema are refused, and so is a schema
// that is too complex (PROTOCOL.md §4).
func TestExpensiveTerms(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	refs := func(to string) string {
		return strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/`+to+`"},`, 12), ",")
	}
	l.accepted(l.ask(api.Call(alpha, api.SchemaPut.Name), putting("twelves",
		`{"$defs":{"c":{"minProperties":1},"b":{"allOf":[`+refs("c")+`]}},"allOf":[`+refs("b")+`]}`)))
	id := l.opens("twelves")
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `"%d":0,`, i)
	}
	err := l.says(id, alpha, "PROPOSE", offer("twelves", "p1", `{`+members.String()+`"x":0}`))
	l.refused(err, session.SchemaInvalid)
	l.fault(err, "/terms", "budget", "131072 steps")
	l.accepted(l.says(id, alpha, "PROPOSE", offer("twelves", "p1", `{"x":0}`)))
	err = l.ask(api.Call(alpha, api.SchemaPut.Name), putting("patterns", `{"pattern":"`+strings.Repeat("x{1000}", 1000)+`"}`))
	l.refused(err, session.SchemaInvalid)
	l.fault(err, "/schema", "complexity", "may have at most 4096")
}

// fault insists on the first detail of a schema_invalid.
func (l line) fault(err error, path, rule, says string) {
	l.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok {
		l.Fatal(err)
	}
	data, err := json.Marshal(refusal.Details)
	if err != nil {
		l.Fatal(err)
	}
	var faults []session.Fault
	if err := json.Unmarshal(data, &faults); err != nil || len(faults) != 1 || faults[0].Path != path || faults[0].Rule != rule || !strings.Contains(faults[0].Message, says) {
		l.Errorf("%s, want %s of %s: …%s…", data, rule, path, says)
	}
}

// A check of terms that takes long holds no slot: acts of others are judged while as
// many checks wait as there are slots.
func TestLongChecksHoldNoSlot(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	l.accepted(l.ask(api.Call(alpha, api.SchemaPut.Name), putting("items", `{"properties":{"a":{"items":{"type":"integer"}}}}`)))
	var ids []performatives.SessionID
	for range runtime.GOMAXPROCS(0) + 1 {
		ids = append(ids, l.opens("items"))
	}
	other := newID()
	l.accepted(l.says(other, alpha, "PROPOSE", invitation(beta)))
	letGo := l.Server.Broker.Command.HoldChecks("agent://gamma.example/other")
	answers, err := l.nc.SubscribeSync(l.nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	terms := `{"a":[` + strings.Repeat("5,", 2000) + `5]}`
	for _, id := range ids {
		if err := l.nc.PublishRequest(api.Submit(alpha, id), answers.Subject, envelope(string(id), alpha, "PROPOSE", offer("items", "p1", terms))); err != nil {
			t.Fatal(err)
		}
	}
	l.accepted(l.says(other, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.says(other, beta, "OBSERVE", `{"subject":"meanwhile"}`))
	if n, _, err := answers.Pending(); err != nil || n > 0 {
		t.Errorf("%d offers were answered without their check (%v)", n, err)
	}
	letGo()
	for range ids {
		m, err := answers.NextMsg(testkit.Patience)
		if err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
			t.Error(m, err)
		}
	}
}

// An operator removes a schema. Its name stays taken: whoever agreed on it meets no other
// schema under it, also after a restart.
func TestSchemaIsRemoved(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Schemas: 1})
	put := func(name, schema string) error {
		return l.ask(api.Call(alpha, api.SchemaPut.Name), putting(name, schema))
	}
	remove := func(subject, name string) error { return l.ask(subject, []byte(`{"name":"`+name+`"}`)) }
	l.accepted(put("a-v1", `{"type":"object"}`))
	id := l.opens("a-v1")
	l.accepted(l.says(id, alpha, "PROPOSE", offer("a-v1", "p1", `{}`)))

	l.refused(remove(api.Call(alpha, api.SchemaRemove.Name), "a-v1"), session.MalformedEnvelope) // it is no verb of theirs
	l.refused(remove(api.OperatorCall(api.SchemaRemove.Name), "b-v1"), session.SchemaUnsupported)
	l.refused(remove(api.OperatorCall(api.SchemaRemove.Name), "PROPOSE"), session.SchemaUnsupported)
	m, err := testkit.Request(l.nc, api.OperatorCall(api.SchemaRemove.Name), []byte(`{"name":"a-v1"}`))
	if err != nil || string(m.Data) != `{"name":"a-v1","version":1,"kind":"terms","by":"`+string(alpha)+`","schema":{"type":"object"}}` {
		t.Errorf("%s, %v", m.Data, err)
	}
	for restarted := range 2 {
		l.refused(remove(api.OperatorCall(api.SchemaRemove.Name), "a-v1"), session.SchemaUnsupported)
		l.refused(l.ask(api.Call(alpha, api.SchemaGet.Name), []byte(`{"name":"a-v1"}`)), session.SchemaUnsupported)
		l.refused(l.says(id, alpha, "PROPOSE", offer("a-v1", "p2", `{"n":2}`)), session.SchemaUnsupported)
		l.refused(put("a-v1", `{"type":"object","minProperties":1}`), session.Duplicate)
		if list := l.listed(); strings.Contains(list, "a-v1") {
			t.Errorf("it is listed: %s", list)
		}
		if restarted == 0 {
			l.Down()
			l.Up()
			l.nc = l.Plain()
		}
	}
	l.accepted(put("a-v1", `{ "type": "object" }`))
	l.accepted(l.says(id, alpha, "PROPOSE", offer("a-v1", "p2", `{"n":2}`)))
	l.refused(put("c-v1", `{}`), session.TooLarge) // the only one that it may have is back
}

func (l line) listed() string {
	l.Helper()
	m, err := testkit.Request(l.nc, api.OperatorCall(api.SchemaList.Name), nil)
	if err != nil {
		l.Fatal(err)
	}
	return string(m.Data)
}

// The schemas of one organisation have so many bytes; a refusal says how many are left.
func TestSchemaBytes(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{SchemaBytes: 3000})
	large := `{"description":"` + strings.Repeat("x", 2000) + `"}`
	put := func(subject, name, schema string) error { return l.ask(subject, putting(name, schema)) }
	of := func(a performatives.Agent) string { return api.Call(a, api.SchemaPut.Name) }
	l.accepted(put(of(alpha), "a-v1", large))
	err := put(of("agent://acme.com/other"), "b-v1", large)
	l.refused(err, session.TooLarge)
	if refusal, ok := errors.AsType[*session.Refusal](err); !ok || !strings.Contains(fmt.Sprint(refusal.Details), "bytesLeft") {
		t.Errorf("the refusal does not say how many are left: %v", err)
	}
	l.accepted(put(of(alpha), "a-v1", large))
	l.accepted(put(of(alpha), "b-v1", `{}`))
	l.accepted(put(of(beta), "c-v1", large))
	l.accepted(put(api.OperatorCall(api.SchemaPut.Name), "d-v1", large))
}
