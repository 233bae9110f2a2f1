package a2agateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A number that a double does not hold is refused, by every binding, and never signed as another one.
func TestNumbersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	message := func(messageID, part string) string {
		return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","contextId":%q,"parts":[{"text":"see"},%s]},"configuration":{"returnImmediately":true}}`, messageID, id, part)
	}
	const large = `{"data":{"action":"propose","terms":{"price":%s}}}`
	for _, number := range []string{"9007199254740993", "1e400", "0.12345678901234567890"} {
		code, why := w.rpc(w.Tokens[cron], "SendMessage", message("m2", fmt.Sprintf(large, number)), nil)
		if code != -32602 || !strings.Contains(why, "/params/message/parts/1/data/terms/price: the number is larger or has more digits than a double holds") && number != "1e400" {
			t.Errorf("%s is answered %d %s", number, code, why)
		}
	}
	rest := w.Send("POST", sellerPath+"/message:send", w.Tokens[cron], message("m2", fmt.Sprintf(large, "9007199254740993")))
	if rest.StatusCode != http.StatusBadRequest || !strings.Contains(string(rest.Body), "/message/parts/1/data/terms/price") || !strings.Contains(string(rest.Body), "malformed") {
		t.Errorf("by REST it is answered %d %s", rest.StatusCode, rest.Body)
	}
	old := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m2","role":"user","contextId":%q,"parts":[{"kind":"data","data":{"action":"propose","terms":{"price":9007199254740993}}}]}}}`, id)
	if a := w.Send("POST", sellerPath+"/", w.Tokens[cron], old); !strings.Contains(string(a.Body), "more digits than a double holds") {
		t.Errorf("by 0.3 it is answered %s", a.Body)
	}
	if acts := w.acts(id, 2); len(acts) != 2 {
		t.Errorf("the acts are %v", acts)
	}
	// Only data is said: numbers beside it, and a file that is longer than any envelope, are read as before.
	beside := strings.Replace(message("m3", fmt.Sprintf(large, "9007199254740991")), `"role"`, `"metadata":{"at":1732950000000000001},"role"`, 1)
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", beside, nil); code != 0 {
		t.Errorf("with a number in its metadata it is answered %d %s", code, why)
	}
	file := fmt.Sprintf(`{"raw":%q}`, strings.Repeat("aGlo", performatives.MaxEnvelope/4))
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", message("m4", file), nil); code != -32005 {
		t.Errorf("a long file is answered %d %s", code, why)
	}
}
