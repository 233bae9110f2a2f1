package a2agateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// entry is one entry of a session.
func (w world) entry(id string, n int) (e api.Entry) {
	w.Helper()
	var page struct {
		Messages []jsontext.Value `json:"messages"`
	}
	w.Send("GET", testkit.SessionPath(performatives.SessionID(id))+"/messages", w.Tokens[seller], "").Is(http.StatusOK, &page)
	e, err := api.ReadEntry(page.Messages[n], nil)
	testkit.Must(w, err)
	return e
}

// A task is working while what was agreed is carried out, and input-required while something of it waits for
// the client: what it owes, a delivery, a dispute. It is completed once nothing is due.
func TestExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	id := w.says("m1", "", `{"data":{"action":"open","purpose":"cups"}}`).ID
	w.asSeller(id, acceptsInvitation)
	w.in("m2", id, `{"text":"I need cups."}`)
	w.asSeller(id, fmt.Sprintf(`{"performative":"COMMIT","body":{"commitmentId":"k1","terms":{"obligations":[
		{"id":"cups","party":%q,"action":"deliver boxes of cups","quantity":10,"unit":"boxes"},{"id":"pay","party":%q,"action":"pay","verificationMethod":"statement"}]}}}`, seller, cron))
	is := func(got task, state string, says ...string) {
		t.Helper()
		if got.ID != id || got.Status.State != "TASK_STATE_"+state {
			t.Errorf("the task is %s %s, want %s", got.ID, got.Status.State, state)
		}
		for _, words := range says {
			if text := got.Status.Message.Parts[0].Text(); !strings.Contains(text, words) {
				t.Errorf("it says %q, want %q", text, words)
			}
		}
	}
	now := func() (got task) {
		t.Helper()
		if code, why := w.rpc(w.Tokens[cron], "GetTask", fmt.Sprintf(`{"id":%q}`, id), &got); code != 0 {
			t.Fatalf("the task is answered %d %s", code, why)
		}
		return got
	}
	asSeller := func(body string) { t.Helper(); w.asSeller(id, `{"performative":"INFORM","body":`+body+`}`) }

	is(w.says("m3", id, `{"data":{"action":"accept"}}`), "INPUT_REQUIRED", "k1/pay: you owe: pay", "one of clarify, delegate, inform, ")
	is(w.says("m4", id, `{"data":{"action":"answer","type":"result","data":{"commitmentId":"k1","obligation":"pay"}}}`), "WORKING", "What was agreed is carried out", "k1/pay", "k1/cups")
	if code, why := w.rpc(w.Tokens[cron], "CancelTask", fmt.Sprintf(`{"id":%q}`, id), nil); code != -32002 {
		t.Errorf("cancel of what is carried out is answered %d %s", code, why)
	}
	asSeller(`{"type":"result","data":{"commitmentId":"k1","obligation":"cups","quantity":4}}`)
	is(now(), "INPUT_REQUIRED", "deliver boxes of cups (4 of 10 boxes)")
	is(w.says("m5", id, `{"data":{"action":"accept"}}`), "WORKING")

	paid := w.entry(id, 5)
	asSeller(fmt.Sprintf(`{"type":"dispute","data":{"disputeId":"d1","subject":%q,"ground":"mismatch","claim":"too little was paid","severity":2}}`, paid.Hash))
	is(now(), "INPUT_REQUIRED", "d1: the dispute of", "waits for you")
	is(w.says("m6", id, `{"data":{"action":"answer","type":"reply","data":{"disputeId":"d1","position":"offer","remedy":"the rest tomorrow"}}}`), "WORKING")
	w.asSeller(id, fmt.Sprintf(`{"performative":"ACCEPT","body":{"referenceId":%q}}`, w.entry(id, 9).ID))
	is(now(), "WORKING")
	w.asSeller(id, fmt.Sprintf(`{"performative":"ACCEPT","body":{"referenceId":%q}}`, paid.ID))
	asSeller(`{"type":"result","data":{"commitmentId":"k1","obligation":"cups"}}`)
	is(now(), "INPUT_REQUIRED", "k1/cups")
	done := w.says("m7", id, `{"data":{"action":"accept"}}`)
	is(done, "COMPLETED")
	if len(done.Artifacts) != 2 {
		t.Errorf("its artifacts are %+v", done.Artifacts)
	}
}
