package a2agateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// An answer that names nothing, where nothing waits for it, is refused for that and invites nobody.
func TestNothingWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	message, in := 0, ""
	refused := func(action, want string) {
		t.Helper()
		message++
		terms := ""
		if action == "counter" {
			terms = `,"terms":{"price":4}`
		}
		code, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(
			`{"message":{"messageId":"n%d","role":"ROLE_USER","parts":[{"data":{"action":%q%s}}]%s}}`, message, action, terms, in), nil)
		if code == 0 || !strings.Contains(why, want) {
			t.Errorf("%s is answered %d %s, want %q", action, code, why, want)
		}
	}
	refused("accept", "nothing waits for your ACCEPT")
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	in = fmt.Sprintf(`,"contextId":%q`, id)
	refused("accept", "your own offer")
	w.asSeller(id, acceptsInvitation)
	refused("counter", "COUNTER is not allowed while INTRODUCED")
	w.in("m2", id, `{"data":{"action":"propose","terms":{"price":5}}}`)
	refused("counter", `"m2" is your own offer`)
	w.asSeller(id, `{"performative":"REJECT","body":{"referenceId":"m2","code":"unspecified","reason":"no","retryable":false}}`)
	refused("reject", "nothing waits for your REJECT. Allowed for you: PROPOSE, ")
	w.in("m3", id, `{"data":{"action":"close","outcome":"failed"}}`)
	refused("accept", "the session is over: failed")
}

// An acceptance of other terms is none, and a rejection has none.
func TestAcceptTakesNoTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	w.asSeller(id, `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"offer","subject":"cups","terms":{"price":120}}}`)
	for i, data := range []string{
		`"action":"accept","terms":{"price":1}`, `"action":"reject","reason":"no","terms":{"price":1}`, `"action":"accept","body":{"referenceId":"p1","terms":{"price":1}}`,
	} {
		code, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(
			`{"message":{"messageId":"t%d","role":"ROLE_USER","taskId":%q,"parts":[{"data":{%s}}]}}`, i, id, data), nil)
		if code != -32602 || !strings.Contains(why, "counter offers other terms") {
			t.Errorf("%s is answered %d %s", data, code, why)
		}
	}
}
