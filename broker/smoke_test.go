package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/test/testbroker"
)

func v7() string { return uuid.Must(uuid.NewV7()).String() }

func send(t *testing.T, nc *nats.Conn, token, uri, sid, act string, body string) map[string]any {
	t.Helper()
	env := fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,"content":{"body":%s}}`,
		v7(), sid, time.Now().UTC().Format(time.RFC3339Nano), uri, act, body)
	m, err := nc.Request("asp.agent."+token+".submit."+sid, []byte(env), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(m.Data, &out); err != nil {
		t.Fatal(err, string(m.Data))
	}
	t.Log(act, string(m.Data), m.Header)
	return out
}

func TestSmoke(t *testing.T) {
	b := testbroker.Start(t, testbroker.Options{Dev: true, Verbose: true})
	nc := b.Plain()
	sid := v7()
	A, B := "acme_com~a", "widgets_co~b"
	a, bb := "agent://acme.com/a", "agent://widgets.co/b"
	send(t, nc, A, a, sid, "PROPOSE", `{"proposalId":"i1","type":"session-invitation","subject":"x","terms":{"participants":["`+bb+`"],"purpose":"p"}}`)
	send(t, nc, B, bb, sid, "ACCEPT", `{"referenceId":"i1"}`)
	send(t, nc, A, a, sid, "PROPOSE", `{"proposalId":"p1","type":"service-agreement","subject":"x","terms":{"price":5}}`)
	send(t, nc, A, a, sid, "ACCEPT", `{"referenceId":"p1"}`)
	send(t, nc, B, bb, sid, "COUNTER", `{"proposalId":"p2","referenceId":"p1","terms":{"price":4}}`)
	send(t, nc, A, a, sid, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":"too much"}`)
	b.Down()
	b.Up()
	nc = b.Plain()
	m, err := nc.Request("asp.agent."+A+".api.session.get", []byte(`{"sessionId":"`+sid+`"}`), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(string(m.Data))
	var v struct{ Escalation struct{ EscalationID string } }
	json.Unmarshal(m.Data, &v)
	send(t, nc, "@acme_com~alice", "human://acme.com/alice", sid, "INFORM", `{"type":"resolution","data":{"escalationId":"`+v.Escalation.EscalationID+`","decision":"approved"}}`)
	send(t, nc, A, a, sid, "ACCEPT", `{"referenceId":"p2"}`)
	send(t, nc, A, a, sid, "CLOSE", `{}`)
	js, _ := jetstream.New(nc)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := js.Consumer(ctx, "ASP_INBOX", B)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.FetchNoWait(100)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		t.Log(m.Headers().Get("Asp-Sequence"), m.Subject())
		m.DoubleAck(ctx)
	}
	for _, verb := range []string{"session.list", "escalation.list", "agent.list", "schema.list"} {
		m, err := nc.Request("asp.agent."+A+".api."+verb, nil, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(verb, string(m.Data))
	}
}
