package a2agateway_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G7: a webhook is told of each change, signed by the agent's key, again if it failed,
// and also after a restart.
func TestA2APush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{PrivateWebhooks: true})
	type notification struct {
		header http.Header
		body   []byte
	}
	came := make(chan notification, 16)
	failed := false
	hook := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !failed { // the first attempt fails
			failed = true
			http.Error(out, "later", http.StatusInternalServerError)
			return
		}
		came <- notification{r.Header, body}
	}))
	t.Cleanup(hook.Close)
	id := w.says("1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	var made struct{ ID string }
	config := fmt.Sprintf(`{"taskId":%q,"url":%q,"token":"secret","authentication":{"scheme":"Bearer","credentials":"xyz"}}`, id, hook.URL)
	if code, why := w.rpc(w.Tokens[cron], "CreateTaskPushNotificationConfig", config, nil); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	var list struct {
		Configs []struct {
			ID string `json:"id"`
		} `json:"configs"`
	}
	w.rpc(w.Tokens[cron], "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, id), &list)
	if len(list.Configs) != 1 {
		t.Fatalf("the webhooks are %+v", list)
	}
	made.ID = list.Configs[0].ID
	for _, method := range []string{"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"} {
		var shown jsontext.Value
		code, _ := w.rpc(w.Tokens[cron], method, fmt.Sprintf(`{"taskId":%q,"id":%q}`, id, made.ID), &shown)
		if text := string(shown); code != 0 || !strings.Contains(text, hook.URL) || strings.Contains(text, "secret") || strings.Contains(text, "xyz") {
			t.Errorf("%s is answered %d %s", method, code, text)
		}
	}
	seen := map[string]bool{}
	expect := func(state string) {
		t.Helper()
		select {
		case n := <-came:
			for seen[n.header.Get("Webhook-Id")] { // one that came before a restart may come again
				n = <-came
			}
			seen[n.header.Get("Webhook-Id")] = true
			var told struct {
				Task task `json:"task"`
			}
			testkit.Must(t, json.Unmarshal(n.body, &told))
			_, held := w.Server.Broker.Parts.Registry.KeysOf(seller)
			signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(n.header.Get("Webhook-Signature"), "v1a,"))
			testkit.Must(t, err)
			signed := n.header.Get("Webhook-Id") + "." + n.header.Get("Webhook-Timestamp") + "." + string(n.body)
			if told.Task.ID != id || told.Task.Status.State != state || n.header.Get("X-A2A-Notification-Token") != "secret" || n.header.Get("Authorization") != "Bearer xyz" ||
				!ed25519.Verify(held.Public(), []byte(signed), signature) {
				t.Errorf("the webhook is called with %s %s", n.header, n.body)
			}
		case <-w.Ctx.Done():
			t.Fatal("the webhook is not called")
		}
	}
	w.asSeller(id, acceptsInvitation)
	expect("TASK_STATE_INPUT_REQUIRED")
	w.Down()
	w.Up()
	w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"abandoned"}}`)
	expect("TASK_STATE_CANCELED")
	if code, _ := w.rpc(w.Tokens[other], "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, id), nil); code != -32001 {
		t.Errorf("a non-participant lists webhooks: %d", code)
	}
}

// A webhook that was replaced at another broker while it was called stays replaced.
func TestA2APushReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{PrivateWebhooks: true})
	came, once := make(chan string, 16), sync.Once{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { // as the other broker does
			replaced := map[string][]byte{}
			found, err := w.Server.Broker.A2ARecords.Records(w.Ctx, "push.>")
			for _, m := range found {
				replaced[m.Subject] = bytes.ReplaceAll(m.Data, []byte("/old"), []byte("/new"))
			}
			for key, data := range replaced {
				_, failed := w.Server.Broker.A2ARecords.Put(w.Ctx, key, data)
				err = errors.Join(err, failed)
			}
			if err != nil || len(replaced) != 1 {
				t.Errorf("%d webhooks are replaced: %v", len(replaced), err)
			}
		})
		came <- r.URL.Path
	}))
	t.Cleanup(hook.Close)
	id := w.says("1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	if code, why := w.rpc(w.Tokens[cron], "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, hook.URL+"/old"), nil); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	w.asSeller(id, acceptsInvitation)
	called := func() string {
		t.Helper()
		select {
		case path := <-came:
			return path
		case <-w.Ctx.Done():
			t.Fatal("no webhook is called")
			return ""
		}
	}
	if path := called(); path != "/old" {
		t.Fatalf("first %s is called", path)
	}
	w.Down()
	w.Up()
	w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"abandoned"}}`)
	if path := called(); path != "/new" {
		t.Errorf("then %s is called", path)
	}
}

// Few webhooks of one client are called at once, however many there are, and another's is called
// meanwhile. What waits is told in the end.
func TestA2APushFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{PrivateWebhooks: true, Sync: time.Minute})
	const tasks, hooks, atOnce = 10, 10, 4
	begun, answer := make(chan string, 10*tasks*hooks), make(chan struct{})
	var now, most atomic.Int32
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		begun <- r.Header.Get("Webhook-Id")
		select { // it is silent
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(sink.Close)
	t.Cleanup(sink.CloseClientConnections)
	came := make(chan struct{}, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- struct{}{} }))
	t.Cleanup(hook.Close)
	adds := func(token, id, url string) {
		t.Helper()
		if code, why := w.rpc(token, "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, url), nil); code != 0 {
			t.Fatalf("%d %s", code, why)
		}
	}
	var ids []string
	for n := range tasks {
		id := w.says(fmt.Sprint(n), "", `{"text":"hello"}`).ID
		for range hooks {
			adds(w.Tokens[cron], id, sink.URL)
		}
		ids = append(ids, id)
	}
	var result struct {
		Task task `json:"task"`
	}
	if code, why := w.rpc(w.Tokens[other], "SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"hello"}]},"configuration":{"returnImmediately":true}}`, &result); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	adds(w.Tokens[other], result.Task.ID, hook.URL)
	for _, id := range ids {
		w.asSeller(id, acceptsInvitation)
	}
	told := map[string]bool{}
	next := func() {
		id := receive(w, begun)
		told[id[:strings.LastIndexByte(id, '.')]] = true // the webhook's key
	}
	for range atOnce {
		next()
	}
	w.asSeller(result.Task.ID, acceptsInvitation)
	receive(w, came)
	if n := len(begun); n > 0 {
		t.Errorf("another client's webhook waited for %d silent ones", n)
	}
	if n := most.Load(); n > atOnce {
		t.Errorf("%d webhooks are called at once, want %d", n, atOnce)
	}
	close(answer)
	for len(told) < tasks*hooks {
		next()
	}
}

// receive waits for what a test's server sends.
func receive[T any](w world, c <-chan T) (v T) {
	w.Helper()
	select {
	case v = <-c:
	case <-w.Ctx.Done():
		w.Fatal("nothing comes")
	}
	return v
}

// A webhook ends with the token that set it, and so does what waits for the invitation.
func TestA2APushEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	standing := w.Tokens[cron]
	w.Tokens[cron] = token.Token // who says speaks with it
	id := w.says("1", "", `{"text":"hello"}`).ID
	if code, why := w.rpc(token.Token, "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":"https://hook.invalid/"}`, id), nil); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	w.Tokens[cron] = standing
	_, err = w.OperatorClient().RemoveToken(w.Ctx, token.ID)
	testkit.Must(t, err)
	w.asSeller(id, acceptsInvitation)
	testkit.Eventually(t, "nothing is left to be pushed", func() bool {
		records, err := w.Server.Broker.A2ARecords.Records(w.Ctx, ">")
		testkit.Must(t, err)
		return len(records) == 0
	})
	if acts := w.acts(id, 2); len(acts) != 2 {
		t.Errorf("the acts are %v", acts)
	}
}

// Clients of A2A 0.3 are served by JSON-RPC, and not by REST.
func TestA2AOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	message := `{"message":{"kind":"message","messageId":%q,"role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"blocking":false}}`
	var rpc struct {
		Result struct {
			Kind   string `json:"kind"`
			ID     string `json:"id"`
			Status struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"result"`
	}
	w.Send("POST", sellerPath+"/", w.Tokens[cron], `{"jsonrpc":"2.0","id":"1","method":"message/send","params":`+fmt.Sprintf(message, "old-1")+`}`).Is(http.StatusOK, &rpc)
	if rpc.Result.ID == "" || rpc.Result.Status.State != "working" {
		t.Errorf("message/send is answered %+v", rpc)
	}
	old := func(r *http.Request) { r.Header.Set("A2A-Version", "0.3") }
	if a := w.Send("POST", sellerPath+"/message:send", w.Tokens[cron], fmt.Sprintf(message, "old-2"), old); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.Body), "VERSION_NOT_SUPPORTED") {
		t.Errorf("REST of 0.3 is answered %d %s", a.StatusCode, a.Body)
	}
	if a := w.Send("POST", sellerPath+"/v1/message:send", w.Tokens[cron], fmt.Sprintf(message, "old-3")); a.StatusCode != http.StatusNotFound {
		t.Errorf("a path of 0.3 is answered %d %s", a.StatusCode, a.Body)
	}
	if a := w.Send("GET", sellerPath+"/"+".well-known/agent-card.json", "", ""); strings.Contains(string(a.Body), `"transport":"HTTP+JSON"`) || !strings.Contains(string(a.Body), `"transport":"JSONRPC"`) {
		t.Errorf("the card offers clients of 0.3 %s", a.Body)
	}
	if a := w.Send("GET", sellerPath+"/tasks", w.Tokens[cron], "", func(r *http.Request) { r.Header.Set("A2A-Version", "7.0") }); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.Body), "VERSION_NOT_SUPPORTED") {
		t.Errorf("version 7.0 is answered %d %s", a.StatusCode, a.Body)
	}
	for asked, want := range map[string]string{`"id":1,`: `"id":1,`, `"id":"a",`: `"id":"a",`, `"id":{},`: `"id":null,`, ``: `"id":null,`} {
		message := `{"jsonrpc":"2.0",` + asked + `"method":"GetTask","params":{}}`
		if a := w.Send("POST", sellerPath+"/", w.Tokens[cron], message, func(r *http.Request) { r.Header.Set("A2A-Version", "7.0") }); !strings.Contains(string(a.Body), want) {
			t.Errorf("version 7.0 of JSON-RPC is answered %s, want %s", a.Body, want)
		}
	}
	w.in("m9", rpc.Result.ID, `{"data":{"action":"withdraw","referenceId":"invitation","reason":"none"}}`)
	for _, method := range []string{"GET", "POST"} {
		if a := w.Send(method, sellerPath+"/tasks/"+rpc.Result.ID+":subscribe", w.Tokens[cron], ""); strings.Contains(string(a.Body), "not found") || a.StatusCode == http.StatusOK {
			t.Errorf("%s to subscribe to a task that is over is answered %d %s", method, a.StatusCode, a.Body)
		}
	}
	if a := w.Send("GET", "/asp/v0.1", "", ""); a.StatusCode != http.StatusOK || !strings.Contains(string(a.Body), "https://parley-asp.github.io/asp/v0.1") {
		t.Errorf("the extension's document is %d %s", a.StatusCode, a.Body)
	}
}
