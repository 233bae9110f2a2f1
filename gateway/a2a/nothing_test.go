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
		code, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(
			`{"message":{"messageId":"n%d","role":"ROLE_USER","parts":[{"data":{"action":%q,"terms":{"price":4}}}]%s}}`, message, action, in), nil)
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
