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

// Issue 17: a tool call costs at most 0.5 ms more than the act under it.
func BenchmarkMCPCall(b *testing.B) {
	w := testkit.NewWorld(b, testkit.Options{HTTP: "127.0.0.1:0", Sync: time.Minute})
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: cron})
	testkit.Must(b, err)
	made, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(b, err)
	signer, err := w.Server.Broker.Custody.Signer(w.Ctx, cron)
	testkit.Must(b, err)
	say := func(id performatives.SessionID, body performatives.Body) {
		envelope, err := performatives.Draft{ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: cron, Body: body}.Envelope(signer)
		testkit.Must(b, err)
		_, err = w.Server.Broker.Gateway.SubmitAs(w.Ctx, cron, id, envelope)
		testkit.Must(b, err)
	}
	other := w.Principal(seller)
	id := testkit.NewSession()
	say(id, testkit.Invitation(seller))
	other.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	b.Run("act", func(b *testing.B) {
		for b.Loop() {
			say(id, testkit.Fact("hello"))
		}
	})
	b.Run("tool", func(b *testing.B) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"answer","arguments":{"sessionId":%q,"type":"fact","data":{"text":"hello"}}}}`, id)
		for b.Loop() {
			r, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, "http://"+w.HTTPAddr+"/mcp?tools=all", strings.NewReader(body))
			testkit.Must(b, err)
			r.Header.Set("Authorization", "Bearer "+made.Token)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			reply, err := http.DefaultClient.Do(r)
			testkit.Must(b, err)
			data, err := io.ReadAll(reply.Body)
			testkit.Must(b, err)
			reply.Body.Close()
			if !strings.Contains(string(data), `"accepted":true`) {
				b.Fatalf("answered %d %s", reply.StatusCode, data)
			}
		}
	})
}
