package mcpgateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A caller calls tools as cron, over plain HTTP.
type caller struct {
	w     *testkit.World
	token string
	say   func(performatives.SessionID, performatives.Body)
}

func newCaller(b *testing.B) caller {
	w := testkit.NewWorld(b, testkit.Options{HTTP: "127.0.0.1:0", Sync: time.Minute})
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: cron})
	testkit.Must(b, err)
	made, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(b, err)
	signer, err := w.Server.Broker.Custody.Signer(w.Ctx, cron)
	testkit.Must(b, err)
	return caller{w, made.Token, func(id performatives.SessionID, body performatives.Body) {
		envelope, err := performatives.Draft{ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: cron, Body: body}.Envelope(signer)
		testkit.Must(b, err)
		_, err = w.Server.Broker.Gateway.SubmitAs(w.Ctx, cron, id, envelope)
		testkit.Must(b, err)
	}}
}

// does calls a tool, whose answer must have a text.
func (c caller) does(b *testing.B, tool, arguments, want string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
	r, err := http.NewRequestWithContext(c.w.Ctx, http.MethodPost, "http://"+c.w.HTTPAddr+"/mcp?tools=all", strings.NewReader(body))
	testkit.Must(b, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	reply, err := http.DefaultClient.Do(r)
	testkit.Must(b, err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	testkit.Must(b, err)
	if !strings.Contains(string(data), want) {
		b.Fatalf("answered %d %s", reply.StatusCode, data)
	}
}

// Issue 17: a tool call costs at most 0.5 ms more than the act under it.
func BenchmarkMCPCall(b *testing.B) {
	c := newCaller(b)
	other := c.w.Principal(seller)
	id := testkit.NewSession()
	c.say(id, testkit.Invitation(seller))
	other.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	b.Run("act", func(b *testing.B) {
		for b.Loop() {
			c.say(id, testkit.Fact("hello"))
		}
	})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			c.does(b, "answer", fmt.Sprintf(`{"sessionId":%q,"type":"fact","data":{"text":"hello"}}`, id), `"accepted":true`)
		}
	})
}

// A list costs the same however long its sessions are.
func BenchmarkMCPList(b *testing.B) {
	const sessions, entries = 50, 100
	c := newCaller(b)
	other := c.w.Principal(seller)
	for range sessions {
		id := testkit.NewSession()
		c.say(id, testkit.Invitation(seller))
		other.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
		for n := 2; n < entries; n++ {
			if n%2 == 0 {
				c.say(id, testkit.Offer(fmt.Sprint("p", n), n))
			} else {
				c.say(id, testkit.Fact("hello"))
			}
		}
	}
	for b.Loop() {
		c.does(b, "list_negotiations", `{"limit":50}`, `"count":50`)
	}
}
