package a2agateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/test/testkit"
)

// A first message that no session would take is refused as a second one is, and nobody is invited.
func TestFirstMessageIsJudged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	talk := w.says("m1", "", `{"text":"hello"}`)
	w.asSeller(talk.ID, acceptsInvitation)
	w.acts(talk.ID, 3)
	for i, part := range []string{
		`"purpose":"p","terms":[]`, `"terms":{"price":5},"validUntil":"2020-01-01T00:00:00Z"`, `"terms":{"price":5},"validUntil":"2036-01-01T00:00:00"`,
		`"terms":{"price":5,"private":{"least":4}}`, `"terms":{"price":5},"subject":""`,
	} {
		message := `{"message":{"messageId":"bad%d%s","role":"ROLE_USER","parts":[{"data":{"action":"propose",%s}}]%s}}`
		first, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(message, i, "a", part, ""), nil)
		second, whySecond := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(message, i, "b", part, fmt.Sprintf(`,"taskId":%q`, talk.ID)), nil)
		if first != -32602 || second != first || why != whySecond {
			t.Errorf("%s is answered %d %s, as a second message %d %s", part, first, why, second, whySecond)
		}
	}
	var list struct {
		Total int `json:"totalSize"`
	}
	if w.rpc(w.Tokens[cron], "ListTasks", `{}`, &list); list.Total != 1 {
		t.Errorf("there are %d tasks", list.Total)
	}
}

// What is refused only when it is said, since the invitation is accepted by then, is told by the task, also on a stream.
func TestFirstMessageRefusedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	const parts = `{"data":{"action":"propose","terms":{"price":5},"schema":"none/1"}}`
	id := w.says("m1", "", parts).ID
	ctx, leave := context.WithCancel(w.Ctx)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.HTTPAddr+sellerPath+"/", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":%q}}`, id)))
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.Tokens[cron])
	r.Header.Set("Content-Type", "application/json")
	next := w.EventsOf(r)
	next() // the task as it is
	w.asSeller(id, acceptsInvitation)
	for told := ""; !strings.Contains(told, `Your first message was refused: the invitation did not agree on schema \"none/1\"`); {
		if told = next().Data; told == "" {
			t.Fatal("the stream ends without it")
		}
	}
	var got task
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &got)
	refused, err := json.Marshal(got.Status.Message.Parts[1].Data())
	testkit.Must(t, err)
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" || !strings.Contains(string(refused), `"code":"schema_unsupported"`) {
		t.Errorf("the task is %+v, with %s", got.Status, refused)
	}
	if again := w.says("m1", "", parts); again.ID != id || !strings.HasPrefix(again.Status.Message.Parts[0].Text(), "Your first message was refused") {
		t.Errorf("the same message again is answered %+v", again.Status)
	}
	w.asSeller(id, `{"performative":"PROPOSE","body":{"proposalId":"c1","type":"offer","subject":"cups","terms":{"price":9}}}`)
	got = task{}
	if w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &got); !strings.Contains(got.Status.Message.Parts[0].Text(), "first message was refused") {
		t.Errorf("before the client has spoken the task says %q", got.Status.Message.Parts[0].Text())
	}
	if said := w.says("m2", id, `{"data":{"action":"counter","terms":{"price":6}}}`); strings.Contains(said.Status.Message.Parts[0].Text(), "refused") {
		t.Errorf("after another act the task says %q", said.Status.Message.Parts[0].Text())
	}
}
