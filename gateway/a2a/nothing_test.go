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

// What is accepted without a name is what the client has seen: not an offer in the place of one that it only talked about.
func TestAcceptsWhatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	offers := func(proposal string, price int) {
		w.asSeller(id, fmt.Sprintf(`{"performative":"PROPOSE","body":{"proposalId":%q,"type":"offer","subject":"cups","terms":{"price":%d}}}`, proposal, price))
	}
	refused := func(message, want string) {
		t.Helper()
		code, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(
			`{"message":{"messageId":%q,"role":"ROLE_USER","taskId":%q,"parts":[{"data":{"action":"accept"}}]}}`, message, id), nil)
		if code != -32602 || !strings.Contains(why, want) {
			t.Errorf("an acceptance is answered %d %s", code, why)
		}
	}
	offers("p1", 50)
	w.says("m2", id, `{"text":"Let me think about 50."}`)
	offers("p2", 900)
	refused("m3", "p2 came after p1, which you have not answered")
	w.says("m4", id, `{"data":{"action":"reject","referenceId":"p2","reason":"too much"}}`)
	offers("p3", 60)
	w.says("m5", id, `{"data":{"action":"propose","terms":{"price":55}}}`) // which is an answer, too
	w.asSeller(id, `{"performative":"COUNTER","body":{"proposalId":"p4","referenceId":"m5","terms":{"price":58}}}`)
	if got := w.says("m6", id, `{"data":{"action":"accept"}}`); !strings.Contains(got.Status.Message.Parts[0].Text(), "58") {
		t.Errorf("the counter-offer is not accepted: %s", got.Status.Message.Parts[0].Text())
	}
}
