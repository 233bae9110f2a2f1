package a2agateway_test

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// sellerPath is where clients of A2A meet the seller.
var sellerPath = "/a2a/" + seller.Token()

// A world is a broker whose seller A2A reaches.
type world struct{ *testkit.World }

func newWorld(t *testing.T, o testkit.Options) world {
	t.Helper()
	w := world{testkit.NewHosted(t, o)}
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: seller, Name: "Seller", A2A: true})
	testkit.Must(t, err)
	return w
}

// rpc calls a method of JSON-RPC and reads its result, or its error's code.
func (w world) rpc(token, method, params string, into any) (code int, message string) {
	w.Helper()
	var reply struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	w.Send("POST", sellerPath+"/", token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)).Is(http.StatusOK, &reply)
	if reply.Error != nil {
		return reply.Error.Code, reply.Error.Message
	}
	if into != nil {
		testkit.Must(w, json.Unmarshal(reply.Result, into))
	}
	return 0, ""
}

// task is a task as these tests read it.
type task struct {
	ID      string `json:"id"`
	Context string `json:"contextId"`
	Status  struct {
		State   string      `json:"state"`
		Message a2a.Message `json:"message"`
	} `json:"status"`
	History   []a2a.Message  `json:"history"`
	Artifacts []a2a.Artifact `json:"artifacts"`
}

// says sends a message as cron and returns the task.
func (w world) says(id, task1, parts string) (t task) {
	w.Helper()
	var result struct {
		Task task `json:"task"`
	}
	at := ""
	if task1 != "" {
		at = fmt.Sprintf(`,"taskId":%q`, task1)
	}
	params := fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[%s]%s},"configuration":{"returnImmediately":true}}`, id, parts, at)
	if code, message := w.rpc(w.Tokens[cron], "SendMessage", params, &result); code != 0 {
		w.Fatalf("%s is answered %d %s", parts, code, message)
	}
	return result.Task
}

// asSeller says an act as the seller.
func (w world) asSeller(id, act string) {
	w.Helper()
	w.Send("POST", testkit.SessionPath(performatives.SessionID(id))+"/messages", w.Tokens[seller], act).Is(http.StatusOK, nil)
}

// acts waits until a session has n entries and returns their performatives.
func (w world) acts(id string, n int) (acts []string) {
	w.Helper()
	testkit.Eventually(w, fmt.Sprintf("%s has %d entries", id, n), func() bool {
		var page struct {
			Messages []struct {
				Performative string `json:"performative"`
			} `json:"messages"`
		}
		w.Send("GET", testkit.SessionPath(performatives.SessionID(id))+"/messages", w.Tokens[cron], "").Is(http.StatusOK, &page)
		acts = nil
		for _, m := range page.Messages {
			acts = append(acts, m.Performative)
		}
		return len(acts) >= n
	})
	return acts
}

const acceptsInvitation = `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`

// GATEWAYS.md G7: text becomes QUERY or INFORM, a data part with an action is a turn, the
// task's states are those of the session, and what was agreed is an artifact.
func TestA2A(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	first := w.says("m1", "", `{"text":"Do you sell cups?"}`)
	if first.ID == "" || first.ID != first.Context || first.Status.State != "TASK_STATE_WORKING" {
		t.Fatalf("the first message makes %+v", first)
	}
	if again := w.says("m1", "", `{"text":"Do you sell cups?"}`); again.ID != first.ID {
		t.Errorf("the same message again is in task %s, the first in %s", again.ID, first.ID)
	}
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Do you sell mugs?"}]}}`, nil); code != -32004 {
		t.Errorf("something else under the same messageId is answered %d %s", code, why)
	}
	w.asSeller(first.ID, acceptsInvitation)
	if acts := w.acts(first.ID, 3); !slices.Equal(acts, []string{"PROPOSE", "ACCEPT", "QUERY"}) {
		t.Errorf("the acts are %v", acts)
	}
	var got task
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, first.ID), &got)
	if got.Status.State != "TASK_STATE_WORKING" {
		t.Errorf("after the question the task is %s", got.Status.State)
	}
	w.asSeller(first.ID, `{"performative":"INFORM","body":{"type":"result","data":{"queryId":"m1","text":"Yes, for 7."}}}`)
	got = task{}
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, first.ID), &got)
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" || len(got.History) != 4 || got.History[3].Parts[0].Text() != "Yes, for 7." ||
		got.History[3].Role != a2a.MessageRoleAgent || got.History[2].Role != a2a.MessageRoleUser || got.History[2].ID == "m1" ||
		!strings.Contains(got.Status.Message.Parts[0].Text(), "one of propose, ") {
		t.Errorf("after the answer the task is %+v", got)
	}
	var said []string
	for _, m := range got.History {
		for _, p := range m.Parts {
			if p.Text() == "Do you sell cups?" {
				said = append(said, m.ID)
			}
		}
	}
	if !slices.Equal(said, []string{"m1"}) {
		t.Errorf("what message m1 says is in the messages %q", said)
	}
	if w.says("m2", first.ID, `{"text":"I would take ten."}`).Status.State != "TASK_STATE_WORKING" {
		t.Error("after text of the caller it is not the agent's turn")
	}
	if w.says("m3", first.ID, `{"data":{"action":"propose","terms":{"price":5}}}`).Status.State != "TASK_STATE_WORKING" {
		t.Error("after an offer of the caller it is not the agent's turn")
	}
	w.asSeller(first.ID, `{"performative":"COUNTER","body":{"proposalId":"c1","referenceId":"m3","terms":{"price":6}}}`)
	got = task{}
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q,"historyLength":1}`, first.ID), &got)
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" || len(got.History) != 1 || !strings.Contains(got.Status.Message.Parts[0].Text(), "c1") {
		t.Errorf("after a counter the task is %+v", got)
	}
	if data, err := json.Marshal(got.Status.Message.Parts[1].Data()); err != nil || !strings.Contains(string(data), `"terms":{"price":6}`) || !strings.Contains(string(data), `"moves":[{"`) {
		t.Errorf("what waits, as data: %s, %v", data, err)
	}
	w.asSeller(first.ID, `{"performative":"WITHDRAW","body":{"referenceId":"c1","reason":"sold out"}}`)
	w.asSeller(first.ID, `{"performative":"PROPOSE","body":{"proposalId":"c2","type":"offer","subject":"cups","terms":{"price":9}}}`)
	unclear := fmt.Sprintf(`{"message":{"messageId":"m4","role":"ROLE_USER","taskId":%q,"parts":[{"data":{"action":"accept"}}]}}`, first.ID)
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", unclear, nil); code != -32602 || !strings.Contains(why, "c1, c2") {
		t.Errorf("an acceptance of one of two new offers is answered %d %s", code, why)
	}
	agreed := w.says("m4", first.ID, `{"data":{"action":"accept","referenceId":"c2"}},{"text":"deal"}`)
	names := []string{}
	for _, a := range agreed.Artifacts {
		names = append(names, a.Name)
	}
	if agreed.Status.State != "TASK_STATE_COMPLETED" || !slices.Equal(names, []string{"outcome"}) {
		t.Errorf("at the end the task is %s with %v", agreed.Status.State, names)
	}
	if again := w.says("m4", first.ID, `{"data":{"action":"accept","referenceId":"c2"}},{"text":"deal"}`); again.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("the same act again leaves the task %s", again.Status.State)
	}
	for id, other := range map[string]string{
		"m1": `{"text":"Do you sell mugs?"}`, "m2": `{"text":"I would take nine."}`, "m3": `{"data":{"action":"propose","terms":{"price":4}}}`,
		"m4": `{"data":{"action":"accept","referenceId":"c2"}}`,
	} {
		in := fmt.Sprintf(`,"taskId":%q`, first.ID)
		if id == "m1" {
			in = ""
		}
		message := fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[%s]%s}}`, id, other, in)
		if code, why := w.rpc(w.Tokens[cron], "SendMessage", message, nil); code != -32004 || !strings.HasPrefix(why, "this messageId was used before") {
			t.Errorf("%s under the messageId %s of another message is answered %d %s", other, id, code, why)
		}
	}
	if code, why := w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, first.ID), nil); code != -32002 {
		t.Errorf("cancel of a completed task is answered %d %s", code, why)
	}
	more := `{"message":{"messageId":"m6","role":"ROLE_USER",%q:%q,"parts":[{"text":"thanks"}]}}`
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(more, "taskId", first.ID), nil); code != -32004 {
		t.Errorf("text to a completed task is answered %d %s", code, why)
	}
	act := strings.Replace(fmt.Sprintf(more, "taskId", first.ID), `{"text":"thanks"}`, `{"data":{"action":"withdraw","referenceId":"c2"}}`, 1)
	if code, why := w.rpc(w.Tokens[cron], "SendMessage", act, nil); code != -32004 {
		t.Errorf("an action to a completed task is answered %d %s", code, why)
	}
}

// in sends a message in a context and returns the task.
func (w world) in(id, context, parts string) (t task) {
	w.Helper()
	var result struct {
		Task task `json:"task"`
	}
	params := fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","contextId":%q,"parts":[%s]},"configuration":{"returnImmediately":true}}`, id, context, parts)
	if code, message := w.rpc(w.Tokens[cron], "SendMessage", params, &result); code != 0 {
		w.Fatalf("%s is answered %d %s", parts, code, message)
	}
	return result.Task
}

// GATEWAYS.md G7: a task that is over stays over, to the byte. What comes later is another task in the
// context, whose id every broker derives from the transcript.
func TestOverStaysOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.Principal("human://widgets.co/alice")
	read := func(id string) (raw string, got task) {
		t.Helper()
		var whole jsontext.Value
		if code, why := w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &whole); code != 0 {
			t.Fatalf("task %s is answered %d %s", id, code, why)
		}
		testkit.Must(t, json.Unmarshal(whole, &got))
		return string(whole), got
	}
	frozen := map[string]string{}
	unchanged := func(after string) {
		t.Helper()
		for id, was := range frozen {
			if now, _ := read(id); now != was {
				t.Errorf("after %s task %s is\n%s\nand was\n%s", after, id, now, was)
			}
		}
	}
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	w.asSeller(id, `{"performative":"PROPOSE","body":{"proposalId":"c1","type":"offer","subject":"cups","terms":{"price":9}}}`)
	w.asSeller(id, `{"performative":"PROPOSE","body":{"proposalId":"c2","type":"offer","subject":"mugs","terms":{"price":4}}}`)
	if got := w.says("m2", id, `{"data":{"action":"accept","referenceId":"c1"}}`); got.ID != id || got.Status.State != "TASK_STATE_INPUT_REQUIRED" {
		t.Errorf("while another offer is open the task is %s %s", got.ID, got.Status.State)
	}
	agreed := w.says("m3", id, `{"data":{"action":"accept","referenceId":"c2"}}`)
	if agreed.ID != id || agreed.Status.State != "TASK_STATE_COMPLETED" || !strings.Contains(agreed.Status.Message.Parts[0].Text(), "price 4") || !strings.Contains(agreed.Status.Message.Parts[0].Text(), "binds nobody yet") {
		t.Fatalf("the task is %+v", agreed)
	}
	frozen[id], _ = read(id)
	if code, _ := w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":"%s.2"}`, id), nil); code != -32001 {
		t.Errorf("a task that is still to come is answered %d", code)
	}
	for _, wrong := range []string{id + ".1", id + ".02", id + ".x", id + "."} {
		if code, _ := w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, wrong), nil); code != -32001 {
			t.Errorf("task %s is answered %d", wrong, code)
		}
	}
	commit := fmt.Sprintf(`{"data":{"action":"commit","referenceId":"c1","terms":{"obligations":[{"party":%q,"action":"pay"}]}}}`, cron)
	second := w.in("m4", id, commit)
	if second.ID != id+".2" || second.Context != id || second.Status.State != "TASK_STATE_WORKING" || len(second.History) != 1 || second.History[0].ID != "m4" {
		t.Errorf("a COMMIT afterwards is in %+v", second)
	}
	if again := w.in("m4", id, commit); again.ID != second.ID {
		t.Errorf("the same message again is in task %s", again.ID)
	}
	if again := w.says("m3", id, `{"data":{"action":"accept","referenceId":"c2"}}`); again.ID != id || again.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("a message that came before is answered with task %s, which is %s", again.ID, again.Status.State)
	}
	unchanged("a COMMIT")
	set := `{"taskId":%q,"url":"https://example.com/hook"}`
	if code, why := w.rpc(w.Tokens[cron], "CreateTaskPushNotificationConfig", fmt.Sprintf(set, second.ID), nil); code != 0 {
		t.Fatalf("a webhook of the second task is answered %d %s", code, why)
	}
	for of, want := range map[string]int{id: 0, second.ID: 1} {
		var hooks struct {
			Configs []jsontext.Value `json:"configs"`
		}
		if w.rpc(w.Tokens[cron], "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, of), &hooks); len(hooks.Configs) != want {
			t.Errorf("task %s has %d webhooks, want %d", of, len(hooks.Configs), want)
		}
	}
	w.asSeller(id, `{"performative":"ACCEPT","body":{"referenceId":"m4"}}`)
	var done task
	frozen[second.ID], done = read(second.ID)
	if done.Status.State != "TASK_STATE_COMPLETED" || done.Status.Message.Parts[0].Text() != "There is an agreement." || len(done.History) != 2 || len(done.Artifacts) != 2 {
		t.Errorf("once the COMMIT is accepted its task is %+v", done)
	}
	w.asSeller(id, `{"performative":"ESCALATE","body":{"reason":"policy-ambiguous","urgency":"low","context":"odd"}}`)
	if _, third := read(id + ".3"); third.Status.State != "TASK_STATE_AUTH_REQUIRED" || len(third.History) != 1 {
		t.Errorf("an ESCALATE afterwards is in %+v", third)
	}
	unchanged("an ESCALATE")
	for _, over := range []string{id, second.ID} {
		if code, _ := w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, over), nil); code != -32002 {
			t.Errorf("cancel of a task that is over is answered %d", code)
		}
		if code, _ := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(`{"message":{"messageId":"late","role":"ROLE_USER","taskId":%q,"contextId":%q,"parts":[{"text":"more"}]}}`, over, id), nil); code != -32004 {
			t.Errorf("a message to a task that is over is answered %d", code)
		}
	}
	var pages []string
	for token := ""; ; {
		var page a2a.ListTasksResponse
		w.rpc(w.Tokens[cron], "ListTasks", fmt.Sprintf(`{"pageSize":1,"pageToken":%q}`, token), &page)
		for _, one := range page.Tasks {
			pages = append(pages, string(one.ID))
		}
		if token = page.NextPageToken; token == "" || len(pages) > 3 {
			break
		}
	}
	if !slices.Equal(pages, []string{id + ".3", id + ".2", id}) {
		t.Errorf("by pages there are the tasks %q", pages)
	}
	var list a2a.ListTasksResponse
	if w.rpc(w.Tokens[cron], "ListTasks", `{"status":"TASK_STATE_COMPLETED"}`, &list); len(list.Tasks) != 2 || list.TotalSize != 2 {
		t.Errorf("completed are %+v", list)
	}
}

// Pages have each task once, the last opened first, whatever ids the sessions have.
func TestA2APages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	alpha := w.Principal(performatives.Agent("agent://acme.com/alpha"))
	token := w.Token(api.AddToken{Agent: alpha.Agent})
	var want []string
	for _, id := range []performatives.SessionID{"", "f47ac10b-58cc-7372-8567-0e02b2c3d479", "00007c10-58cc-7372-8567-0e02b2c3d479", ""} {
		id = cmp.Or(id, testkit.NewSession())
		alpha.Say(id, testkit.Invitation(seller))
		want = slices.Insert(want, 0, string(id))
		for opened := time.Now().UnixMilli(); time.Now().UnixMilli() == opened; { // or the ids would be the order
		}
	}
	for size := 1; size <= len(want); size++ {
		var got []string
		for next := ""; len(got) <= len(want); {
			var page a2a.ListTasksResponse
			w.rpc(token, "ListTasks", fmt.Sprintf(`{"pageSize":%d,"pageToken":%q}`, size, next), &page)
			for _, one := range page.Tasks {
				got = append(got, string(one.ID))
			}
			if next = page.NextPageToken; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q, want %q", size, got, want)
		}
	}
}

// A message that is not streamed is answered once the task waits for the client.
func TestA2AWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	answer := make(chan task, 1)
	go func() {
		var result struct {
			Task task `json:"task"`
		}
		w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(`{"message":{"messageId":"m2","role":"ROLE_USER","taskId":%q,"parts":[{"text":"How many?"}]}}`, id), &result)
		answer <- result.Task
	}()
	w.acts(id, 3)
	select {
	case got := <-answer:
		t.Errorf("before the agent has answered the message is answered %+v", got)
	default:
	}
	w.asSeller(id, `{"performative":"INFORM","body":{"type":"result","data":{"queryId":"m2","text":"Ten."}}}`)
	if got := <-answer; got.Status.State != "TASK_STATE_INPUT_REQUIRED" || len(got.History) != 4 || got.History[2].ID != "m2" || got.History[3].Parts[0].Text() != "Ten." {
		t.Errorf("once the agent has answered the message is answered %+v", got)
	}
	if got := w.says("m3", id, `{"text":"And mugs?"}`); got.Status.State != "TASK_STATE_WORKING" {
		t.Errorf("with returnImmediately a message is answered %s", got.Status.State)
	}
	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	refused := make(chan string, 1)
	go func() {
		code, why := w.rpc(token.Token, "SendMessage", fmt.Sprintf(`{"message":{"messageId":"m4","role":"ROLE_USER","taskId":%q,"parts":[{"text":"And saucers?"}]}}`, id), nil)
		refused <- fmt.Sprint(code, " ", why)
	}()
	w.acts(id, 6)
	_, err = w.OperatorClient().RemoveToken(w.Ctx, token.ID)
	testkit.Must(t, err)
	if got := <-refused; got != "-31401 the message was said; the token is no longer valid" {
		t.Errorf("once its token is removed the message is answered %s", got)
	}
}

// A stream tells each state since what its message said, also when it looks after all of them.
func TestStreamOfPassedStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	alice := w.Principal("human://acme.com/alice")
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	parts := `{"data":{"action":"escalate","urgency":"low","reason":"policy-ambiguous","context":{}}}`
	asked := w.says("m2", id, parts)
	escalation, _ := asked.Status.Message.Parts[1].Data().(map[string]any)["escalationId"].(string)
	alice.Say(performatives.SessionID(id), testkit.Ruling(performatives.MessageID(escalation), "approved"))
	w.asSeller(id, `{"performative":"PROPOSE","body":{"proposalId":"p","type":"service-agreement","subject":"cups","terms":{"price":5}}}`)
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, "http://"+w.HTTPAddr+sellerPath+"/", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m2","role":"ROLE_USER","taskId":%q,"parts":[%s]}}}`, id, parts)))
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.Tokens[cron])
	r.Header.Set("Content-Type", "application/json")
	next := w.EventsOf(r)
	var states []string
	for len(states) == 0 || states[len(states)-1] != "TASK_STATE_INPUT_REQUIRED" {
		var told struct {
			Result struct {
				Task, StatusUpdate struct{ Status struct{ State string } }
			} `json:"result"`
		}
		testkit.Must(t, json.Unmarshal([]byte(next().Data), &told, json.MatchCaseInsensitiveNames(true)))
		states = append(states, told.Result.Task.Status.State+told.Result.StatusUpdate.Status.State)
	}
	if want := []string{"TASK_STATE_AUTH_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"}; !slices.Equal(states, want) {
		t.Errorf("the stream tells %v, want %v", states, want)
	}
}

// GATEWAYS.md G7: how a session ends is how its task does, and cancel is WITHDRAW or CLOSE.
func TestA2AEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	cancel := func(id, want string) {
		t.Helper()
		var canceled task
		if code, message := w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, id), &canceled); code != 0 || canceled.Status.State != want {
			t.Errorf("cancel leaves the task %s: %d %s", canceled.Status.State, code, message)
		}
		if code, _ := w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, id), nil); code != -32002 {
			t.Errorf("cancel of a task that is over is answered %d", code)
		}
	}
	invited := w.says("i", "", `{"data":{"action":"open","purpose":"cups"}}`)
	cancel(invited.ID, "TASK_STATE_CANCELED")
	open := w.says("o", "", `{"data":{"action":"open","purpose":"cups"}}`)
	w.asSeller(open.ID, acceptsInvitation)
	cancel(open.ID, "TASK_STATE_CANCELED")
	if acts := w.acts(open.ID, 3); acts[2] != "CLOSE" {
		t.Errorf("the acts are %v", acts)
	}
	refused := w.says("r", "", `{"data":{"action":"open","purpose":"cups"}}`)
	w.asSeller(refused.ID, `{"performative":"REJECT","body":{"referenceId":"invitation","code":"capacity_unavailable","reason":"no","retryable":false}}`)
	var got task
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, refused.ID), &got)
	if got.Status.State != "TASK_STATE_REJECTED" {
		t.Errorf("a rejected invitation is %s", got.Status.State)
	}
	matched := w.says("b", "", `{"data":{"action":"open","purpose":"cups","mode":"bilateral/1"}}`)
	w.asSeller(matched.ID, acceptsInvitation)
	assessed := `"assessment":{"reasoning":"r","suggestedRoles":{"ownUser":"patient","otherUser":"agent"}}`
	w.says("b2", matched.ID, `{"data":{"action":"propose","terms":{},`+assessed+`}}`)
	w.asSeller(matched.ID, `{"performative":"REJECT","body":{"referenceId":"b2","code":"unspecified","reason":"no","retryable":false,`+assessed+`}}`)
	w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, matched.ID), &got)
	if got.Status.State != "TASK_STATE_REJECTED" || len(got.Artifacts) != 1 || got.Artifacts[0].Name != "outcome" {
		t.Errorf("a rejected match is %+v", got)
	}
}

// COMMITMENTS.md C1: what was accepted in a session that is abandoned, fails, runs out or is cancelled made no
// agreement, and its task is not completed.
func TestA2ANoAgreement(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := newWorld(t, testkit.Options{Now: clock.Now})
	for name, of := range map[string]struct {
		end         func(id string)
		state, says string
		agreements  int
	}{
		"abandoned": {func(id string) { w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"abandoned"}}`) }, "TASK_STATE_CANCELED", "abandoned", 0},
		"failed":    {func(id string) { w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"failed"}}`) }, "TASK_STATE_CANCELED", "failed", 0},
		"cancelled": {func(id string) { w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, id), nil) }, "TASK_STATE_CANCELED", "abandoned", 0},
		"completed": {func(id string) { w.asSeller(id, `{"performative":"CLOSE","body":{"outcome":"completed"}}`) }, "TASK_STATE_COMPLETED", "", 1},
		"timed out": {func(string) { clock.Advance(31 * 24 * time.Hour) }, "TASK_STATE_FAILED", "timeout", 0},
	} {
		id := w.says(name, "", `{"data":{"action":"open","purpose":"cups"}}`).ID
		w.asSeller(id, acceptsInvitation)
		for price, subject := range []string{"cups", "lids"} {
			w.asSeller(id, fmt.Sprintf(`{"performative":"PROPOSE","body":{"proposalId":%q,"type":"offer","subject":%[1]q,"terms":{"price":%d}}}`, subject, price))
		}
		w.says(name+"2", id, `{"data":{"action":"accept","referenceId":"cups"}}`)
		of.end(id)
		var got task
		testkit.Eventually(t, name, func() bool {
			got = task{}
			w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &got)
			return got.Status.State != "TASK_STATE_INPUT_REQUIRED"
		})
		text := got.Status.Message.Parts[0].Text()
		if got.Status.State != of.state || !strings.Contains(text, of.says) || strings.Contains(text, "There is an agreement") != (of.agreements > 0) || len(got.Artifacts) != 1+of.agreements {
			t.Errorf("%s is %s, %q, with %d artifacts", name, got.Status.State, text, len(got.Artifacts))
		}
	}
}

// Non-participants, bad tokens and bad input learn nothing and change nothing.
func TestA2AHostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	for _, token := range []string{"", "parley_x_y", w.Tokens[cron] + "x"} {
		if a := w.Send("POST", sellerPath+"/", token, `{}`); a.StatusCode != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("without a token the answer is %d %s", a.StatusCode, a.Body)
		}
	}
	none, other1 := w.Send("GET", "/a2a/none_io~x/.well-known/agent-card.json", "", ""), w.Send("GET", "/a2a/"+cron.Token()+"/.well-known/agent-card.json", "", "")
	if none.StatusCode != http.StatusNotFound || !bytes.Equal(none.Body, other1.Body) {
		t.Errorf("an agent that A2A does not reach is answered %d %s, and none %s", other1.StatusCode, other1.Body, none.Body)
	}
	id := w.says("m1", "", `{"text":"hello"}`).ID
	for _, method := range []string{"GetTask", "CancelTask"} {
		outside, why := w.rpc(w.Tokens[other], method, fmt.Sprintf(`{"id":%q}`, id), nil)
		nobody, whyNot := w.rpc(w.Tokens[other], method, fmt.Sprintf(`{"id":%q}`, testkit.NewSession()), nil)
		if outside != -32001 || nobody != outside || why != whyNot {
			t.Errorf("%s of a non-participant is answered %d %s, of nothing %d %s", method, outside, why, nobody, whyNot)
		}
	}
	if a := w.Send("POST", sellerPath+"/", w.Tokens[cron], `{"x":"`+strings.Repeat("x", 10<<20)+`"}`); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("10 MB are answered %d", a.StatusCode)
	}
	readOnly := w.Token(api.AddToken{Agent: cron, Name: "reader", ReadOnly: true})
	if code, _ := w.rpc(readOnly, "SendMessage", `{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"text":"x"}]}}`, nil); code != -31403 {
		t.Errorf("a read-only token is answered %d", code)
	}
	for _, bad := range []string{
		`{}`, `{"message":{}}`, `{"message":{"messageId":"x","role":"ROLE_USER","parts":[]}}`, `{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"data":{"action":"buy"}}]}}`,
		`{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"data":[1]}]}}`, `{"message":{"messageId":7}}`, `{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"text":""}]}}`,
		`{"message":{"messageId":"x","role":"ROLE_USER","contextId":"mine","parts":[{"text":"x"}]}}`, fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":"x"}]}}`, strings.Repeat("x", 200)),
		`{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"data":{"version":"asp/0.1"}}]}}`,
	} {
		if code, message := w.rpc(w.Tokens[cron], "SendMessage", bad, nil); code != -32602 {
			t.Errorf("%.80s is answered %d %s", bad, code, message)
		}
	}
	if code, _ := w.rpc(w.Tokens[cron], "SendMessage", `{"message":{"messageId":"x","role":"ROLE_USER","parts":[{"raw":"aGk="}]}}`, nil); code != -32005 {
		t.Errorf("a file is answered %d", code)
	}
	if code, _ := w.rpc(w.Tokens[cron], "Nothing", `{}`, nil); code != -32601 {
		t.Errorf("an unknown method is answered %d", code)
	}
	for _, url := range []string{"http://127.0.0.1:1/", "http://localhost/", "https://10.0.0.1/", "http://[::1]/", "ftp://a.io/", "http://169.254.169.254/"} {
		if code, _ := w.rpc(w.Tokens[cron], "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, url), nil); code != -32602 {
			t.Errorf("a webhook at %s is answered %d", url, code)
		}
	}
	var list a2a.ListTasksResponse
	if w.rpc(w.Tokens[cron], "ListTasks", `{}`, &list); len(list.Tasks) != 1 {
		t.Errorf("bad messages made %d tasks", len(list.Tasks)-1)
	}
}

// GATEWAYS.md G7: the card is signed by the agent's key over its canonical form.
func TestA2ACard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	var card map[string]any
	read := w.Send("GET", sellerPath+"/"+a2agateway.CardPath, "", "")
	read.Is(http.StatusOK, &card)
	again := w.Send("GET", sellerPath+"/"+a2agateway.CardPath, "", "", func(r *http.Request) { r.Header.Set("If-None-Match", read.Header.Get("ETag")) })
	if again.StatusCode != http.StatusNotModified || !strings.Contains(read.Header.Get("Cache-Control"), "max-age=") || read.Header.Get("Last-Modified") == "" {
		t.Errorf("the card again is answered %d, the first time with %v", again.StatusCode, read.Header)
	}
	var parsed a2a.AgentCard
	data, err := json.Marshal(card)
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(data, &parsed))
	if parsed.Name != "Seller" || !parsed.Capabilities.Streaming || !parsed.Capabilities.PushNotifications || len(parsed.SupportedInterfaces) != 3 ||
		parsed.Capabilities.Extensions[0].URI != a2agateway.Extension || len(parsed.Signatures) != 2 || parsed.SupportedInterfaces[0].URL != "http://"+w.HTTPAddr+sellerPath+"/" {
		t.Errorf("the card is %s", data)
	}
	var keys struct {
		Keys []struct{ Kid, X, Alg string } `json:"keys"`
	}
	w.Send("GET", sellerPath+"/"+a2agateway.KeysPath, "", "").Is(http.StatusOK, nil)
	testkit.Must(t, json.Unmarshal(w.Send("GET", sellerPath+"/"+a2agateway.KeysPath, "", "").Body, &keys, json.MatchCaseInsensitiveNames(true)))
	var header struct{ Kid, Alg, Jku string }
	protected, err := base64.RawURLEncoding.DecodeString(parsed.Signatures[0].Protected)
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(protected, &header, json.MatchCaseInsensitiveNames(true)))
	_, held := w.Server.Broker.Parts.Registry.KeysOf(seller)
	if len(keys.Keys) != 1 || header.Kid != string(held) || keys.Keys[0].Kid != header.Kid || header.Alg != "EdDSA" || header.Jku != "http://"+w.HTTPAddr+sellerPath+"/"+a2agateway.KeysPath {
		t.Errorf("the header is %s, the keys %+v", protected, keys)
	}
	x, err := base64.RawURLEncoding.DecodeString(keys.Keys[0].X)
	testkit.Must(t, err)
	delete(card, "signatures")
	whole, err := json.Marshal(card)
	testkit.Must(t, err)
	whole, err = performatives.Canonical(whole)
	testkit.Must(t, err)
	of, err := base64.RawURLEncoding.DecodeString(parsed.Signatures[1].Signature)
	testkit.Must(t, err)
	if !ed25519.Verify(x, []byte(parsed.Signatures[1].Protected+"."+base64.RawURLEncoding.EncodeToString(whole)), of) {
		t.Error("the second signature is not of the whole card")
	}
	for _, name := range []string{"protocolVersion", "url", "preferredTransport", "additionalInterfaces", "security"} {
		delete(card, name) // those of 0.3
	}
	card["securitySchemes"] = map[string]any{"bearer": maps.Collect(func(yield func(string, any) bool) {
		bearer := card["securitySchemes"].(map[string]any)["bearer"].(map[string]any) //nolint:forcetypeassert // else the test fails
		yield("httpAuthSecurityScheme", bearer["httpAuthSecurityScheme"])
	})}
	payload, err := json.Marshal(card)
	testkit.Must(t, err)
	payload, err = performatives.Canonical(payload)
	testkit.Must(t, err)
	signature, err := base64.RawURLEncoding.DecodeString(parsed.Signatures[0].Signature)
	testkit.Must(t, err)
	signed := []byte(parsed.Signatures[0].Protected + "." + base64.RawURLEncoding.EncodeToString(payload))
	if !ed25519.Verify(x, signed, signature) || ed25519.Verify(x, append(signed, 'x'), signature) {
		t.Errorf("the signature is not of %s", payload)
	}
}

// Nobody gets a card that is signed for a host of its own choice.
func TestA2ACardHost(t *testing.T) {
	t.Parallel()
	at := func(w world, host string) string {
		return string(w.Send("GET", sellerPath+"/"+a2agateway.CardPath, "", "", func(r *http.Request) { r.Host = host }).Body)
	}
	w := newWorld(t, testkit.Options{})
	_, port, err := net.SplitHostPort(w.HTTPAddr)
	testkit.Must(t, err)
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1", "127.0.0.1:1", "127.0.0.2:" + port} {
		if card := at(w, host); strings.Contains(card, `"signatures"`) || !strings.Contains(card, "http://"+host+"/") {
			t.Errorf("asked as %s, the card is %s", host, card)
		}
	}
	if card := at(w, "localhost:"+port); !strings.Contains(card, `"signatures"`) {
		t.Errorf("on loopback the card is %s", card)
	}
	w = newWorld(t, testkit.Options{HTTPURL: "https://parley.example"})
	if card := at(w, "evil.example"); !strings.Contains(card, `"signatures"`) || strings.Contains(card, "evil") || !strings.Contains(card, "https://parley.example"+sellerPath) {
		t.Errorf("with --http-url the card is %s", card)
	}
}

// GATEWAYS.md G7: with the extension, who signs for itself sends envelopes in data parts, and
// reads them as they were signed; ESCALATED is auth-required.
func TestA2AExtension(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.Principal("human://acme.com/alice")
	alpha := w.Principal(performatives.Agent("agent://acme.com/alpha"))
	w.Tokens[cron] = w.Token(api.AddToken{Agent: alpha.Agent}) // who says speaks with it
	id := testkit.NewSession()
	part := func(body performatives.Body) string { return `{"data":` + string(alpha.Envelope(id, body)) + `}` }
	invited := w.says("1", "", part(&performatives.ProposeBody{
		ProposalID: "invitation", Type: performatives.SessionInvitation, Subject: "cups", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"publish":"terms"}}`, seller),
	}))
	if invited.ID != string(id) || invited.Status.State != "TASK_STATE_WORKING" {
		t.Fatalf("an envelope opens %+v", invited)
	}
	w.asSeller(string(id), acceptsInvitation)
	var turn task
	if w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &turn); !strings.Contains(turn.Status.Message.Parts[0].Text(), "public log shows all terms") {
		t.Errorf("the task does not say what is published: %s", turn.Status.Message.Parts[0].Text())
	}
	paused := w.says("2", string(id), part(&performatives.EscalateBody{Reason: "policy-ambiguous", Urgency: "low", Context: []byte(`{}`)}))
	if paused.Status.State != "TASK_STATE_AUTH_REQUIRED" || !strings.Contains(paused.Status.Message.Parts[0].Text(), "acme.com") {
		t.Errorf("an escalated session is %+v", paused.Status)
	}
	if code, _ := w.rpc(w.Tokens[cron], "SendMessage", fmt.Sprintf(`{"message":{"messageId":"3","role":"ROLE_USER","taskId":%q,"parts":[{"text":"x"}]}}`, id), nil); code != -31403 {
		t.Errorf("text of who signs for itself is answered %d", code)
	}
	asked := w.Send("GET", sellerPath+"/tasks/"+string(id), w.Tokens[cron], "", func(r *http.Request) { r.Header.Set("A2A-Extensions", a2agateway.Extension) })
	var shown task
	asked.Is(http.StatusOK, &shown)
	envelope, _ := shown.History[2].Parts[1].Data().(map[string]any)
	if asked.Header.Get("A2A-Extensions") != a2agateway.Extension || envelope["performative"] != "ESCALATE" || envelope["integrity"] == nil {
		t.Errorf("with the extension the history is %s", asked.Body)
	}
}
