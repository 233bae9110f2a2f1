package server_test

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
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
)

// GATEWAYS.md G7: a webhook hears of each change, signed by the agent's key, again if it failed,
// and also after a restart.
func TestA2APush(t *testing.T) {
	t.Parallel()
	w := newA2AWorld(t, testkit.Options{PrivateWebhooks: true})
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
	config := fmt.Sprintf(`{"taskId":%q,"url":%q,"token":"secret","authentication":{"scheme":"Bearer","credentials":"abc"}}`, id, hook.URL)
	if code, why := w.rpc(w.tokens[cron], "CreateTaskPushNotificationConfig", config, nil); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	var list struct {
		Configs []struct {
			ID string `json:"id"`
		} `json:"configs"`
	}
	w.rpc(w.tokens[cron], "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, id), &list)
	if len(list.Configs) != 1 {
		t.Fatalf("the webhooks are %+v", list)
	}
	made.ID = list.Configs[0].ID
	for _, method := range []string{"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"} {
		var shown jsontext.Value
		code, _ := w.rpc(w.tokens[cron], method, fmt.Sprintf(`{"taskId":%q,"id":%q}`, id, made.ID), &shown)
		if text := string(shown); code != 0 || !strings.Contains(text, hook.URL) || strings.Contains(text, "secret") || strings.Contains(text, "abc") {
			t.Errorf("%s is answered %d %s", method, code, text)
		}
	}
	heard := map[string]bool{}
	hears := func(state string) {
		t.Helper()
		select {
		case n := <-came:
			for heard[n.header.Get("Webhook-Id")] { // one that came before a restart may come again
				n = <-came
			}
			heard[n.header.Get("Webhook-Id")] = true
			var told struct {
				Task task `json:"task"`
			}
			testkit.Must(t, json.Unmarshal(n.body, &told))
			_, held := w.KeysOf(seller)
			signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(n.header.Get("Webhook-Signature"), "v1a,"))
			testkit.Must(t, err)
			signed := n.header.Get("Webhook-Id") + "." + n.header.Get("Webhook-Timestamp") + "." + string(n.body)
			if told.Task.ID != id || told.Task.Status.State != state || n.header.Get("X-A2A-Notification-Token") != "secret" || n.header.Get("Authorization") != "Bearer abc" ||
				!ed25519.Verify(held.Public(), []byte(signed), signature) {
				t.Errorf("the webhook hears %s %s", n.header, n.body)
			}
		case <-w.Ctx.Done():
			t.Fatal("the webhook hears nothing")
		}
	}
	w.asSeller(id, acceptsInvitation)
	hears("TASK_STATE_INPUT_REQUIRED")
	w.Down()
	w.Up()
	w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"abandoned"}}`)
	hears("TASK_STATE_CANCELED")
	if code, _ := w.rpc(w.tokens[other], "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, id), nil); code != -32001 {
		t.Errorf("a stranger lists webhooks: %d", code)
	}
}

// A webhook that was replaced at another broker while it was called stays replaced.
func TestA2APushReplaced(t *testing.T) {
	t.Parallel()
	w := newA2AWorld(t, testkit.Options{PrivateWebhooks: true})
	came, once := make(chan string, 16), sync.Once{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { // as the other broker does
			replaced := map[string][]byte{}
			err := w.A2ARecords().All(w.Ctx, "push.>", func(key string, data []byte, _ uint64) {
				replaced[key] = bytes.ReplaceAll(data, []byte("/old"), []byte("/new"))
			})
			for key, data := range replaced {
				_, failed := w.A2ARecords().Put(w.Ctx, key, data)
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
	if code, why := w.rpc(w.tokens[cron], "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, hook.URL+"/old"), nil); code != 0 {
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

// A webhook ends with the token that set it, and so does what waits for the invitation.
func TestA2APushEnds(t *testing.T) {
	t.Parallel()
	w := newA2AWorld(t, testkit.Options{})
	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	standing := w.tokens[cron]
	w.tokens[cron] = token.Token // who says speaks with it
	id := w.says("1", "", `{"text":"hello"}`).ID
	if code, why := w.rpc(token.Token, "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":"https://hook.invalid/"}`, id), nil); code != 0 {
		t.Fatalf("%d %s", code, why)
	}
	w.tokens[cron] = standing
	_, err = w.OperatorClient().RemoveToken(w.Ctx, token.ID)
	testkit.Must(t, err)
	w.asSeller(id, acceptsInvitation)
	for {
		records := 0
		testkit.Must(t, w.A2ARecords().All(w.Ctx, ">", func(string, []byte, uint64) { records++ }))
		if records == 0 {
			break
		}
	}
	if acts := w.acts(id, 2); len(acts) != 2 {
		t.Errorf("the acts are %v", acts)
	}
}

// Clients of A2A 0.3 are served by JSON-RPC and REST.
func TestA2AOld(t *testing.T) {
	t.Parallel()
	w := newA2AWorld(t, testkit.Options{})
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
	w.send("POST", sellerPath+"/", w.tokens[cron], `{"jsonrpc":"2.0","id":"1","method":"message/send","params":`+fmt.Sprintf(message, "old-1")+`}`).is(http.StatusOK, &rpc)
	if rpc.Result.ID == "" || rpc.Result.Status.State != "working" {
		t.Errorf("message/send is answered %+v", rpc)
	}
	if a := w.send("POST", sellerPath+"/v1/message:send", w.tokens[cron], `{"message":{"messageId":"old-2","role":"user","parts":[{"text":"hello","kind":"text"}]}}`); a.status != http.StatusOK || !strings.Contains(string(a.body), "working") {
		t.Errorf("REST of 0.3 is answered %d %s", a.status, a.body)
	}
	if a := w.send("GET", sellerPath+"/tasks", w.tokens[cron], "", func(r *http.Request) { r.Header.Set("A2A-Version", "7.0") }); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), "VERSION_NOT_SUPPORTED") {
		t.Errorf("version 7.0 is answered %d %s", a.status, a.body)
	}
	if a := w.send("GET", "/asp/v0.1", "", ""); a.status != http.StatusOK || !strings.Contains(string(a.body), "https://parley-asp.github.io/asp/v0.1") {
		t.Errorf("the extension's document is %d %s", a.status, a.body)
	}
}
