package adversary

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// What one side seals, and the name of a human who is asked and does not act.
const (
	marked  = "MARK-76123"
	allowed = 739146285017 // no time and no hash has so many digits in this order
	quiet   = "quietdave"
)

var marks = []string{marked, fmt.Sprint(allowed)}

func shows(text string, marks ...string) bool {
	for _, m := range marks {
		if strings.Contains(text, m) {
			return true
		}
	}
	return false
}

// TestSealedFromEverywhere: an agent asks and a human rules, both sealed. Wherever the other side looks,
// in the logs, in the events and in what is stored for anybody else, there is nothing of it, nor of who
// was asked and did not act (PROTOCOL.md §7).
func TestSealedFromEverywhere(t *testing.T) {
	t.Parallel()
	rules, err := server.ReadRules("testdata/quiet.yaml")
	testkit.Must(t, err)
	core, logged := observer.New(zap.DebugLevel)
	w := testkit.NewHosted(t, testkit.Options{Rules: rules, Log: zap.New(core), PrivateWebhooks: true})
	buyer, seller, boss := testkit.Cron, testkit.Seller, performatives.Agent("human://acme.com/alice")
	for _, human := range []performatives.Agent{boss, "human://acme.com/" + quiet, "human://widgets.co/bob"} {
		w.Principal(human)
	}
	for _, a := range []performatives.Agent{buyer, seller} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a, A2A: true})
		testkit.Must(t, err)
	}
	inside := w.Server.Broker.Options.Conn
	events, err := inside.SubscribeSync("asp.event.>")
	testkit.Must(t, err)

	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[buyer], fmt.Sprintf(`{"with":[%q],"purpose":"cranes"}`, seller)).Is(http.StatusCreated, &opened)
	id, path := opened.Session, testkit.SessionPath(opened.Session)
	says := func(a performatives.Agent, act, body string) (said api.Acceptance) {
		t.Helper()
		w.Send("POST", path+"/messages", w.Tokens[a], fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body)).Is(http.StatusOK, &said)
		return said
	}
	says(seller, "ACCEPT", `{"referenceId":"invitation"}`)
	woken, pushed := webhook(w), webhook(w)
	w.Send("PUT", path+"/wakeup", w.Tokens[seller], fmt.Sprintf(`{"url":%q}`, woken.URL)).Is(http.StatusOK, nil)
	hook := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":%q,"url":%q}}`, id, pushed.URL)
	if got := w.Send("POST", "/a2a/"+buyer.Token()+"/", w.Tokens[seller], hook); !strings.Contains(string(got.Body), pushed.URL) {
		t.Fatalf("no webhook is set: %s", got.Body)
	}
	says(seller, "PROPOSE", `{"proposalId":"p1","type":"sale","subject":"crane","terms":{"price":{"amount":500000,"currency":"USD"}}}`)
	asked := says(buyer, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":{"limit":"`+marked+`"},"suggestedAction":"hold at `+marked+`","referenceId":"p1"}`)
	calls := map[string]func(a performatives.Agent) string{
		"A2A": func(a performatives.Agent) string {
			with := seller
			if a == seller {
				with = buyer
			}
			return string(w.Send("POST", "/a2a/"+with.Token()+"/", w.Tokens[a], fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":%q}}`, id)).Body)
		},
		"a turn": func(a performatives.Agent) string {
			return string(w.Send("POST", "/v1/asp/turns/pickup", w.Tokens[a], `{}`).Body)
		},
	}
	for _, get := range []string{
		path, path + "/messages", path + "/snapshot?since=0", "/v1/asp/sessions", "/v1/asp/inbox/messages?since=0", "/v1/asp/escalations?status=all",
		"/v1/asp/escalations/" + string(asked.Message), "/v1/asp/insights",
	} {
		calls[get] = func(a performatives.Agent) string { return string(w.Send("GET", get, w.Tokens[a], "").Body) }
	}
	for tool, arguments := range map[string]string{
		"get_transcript": `{"sessionId":"` + string(id) + `"}`, "wait_for_turn": `{"sessionId":"` + string(id) + `","since":0,"seconds":0}`,
		"get_negotiation": `{"negotiationId":"` + string(id) + `"}`, "list_negotiations": `{}`,
	} {
		calls["MCP "+tool] = func(a performatives.Agent) string {
			return string(w.CallTool(w.Tokens[a], fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)).Body)
		}
	}
	ours := map[string]bool{path: true, path + "/messages": true, path + "/snapshot?since=0": true, "/v1/asp/escalations/" + string(asked.Message): true, "MCP get_transcript": true, "A2A": true}
	looks := func() {
		t.Helper()
		for name, call := range calls {
			if got := call(seller); shows(got, append(marks, quiet)...) {
				t.Errorf("%s tells the other side %s", name, got)
			}
			if got := call(buyer); ours[name] && !shows(got, marks...) {
				t.Errorf("%s keeps from its own side what it sealed: %s", name, got)
			}
		}
		next := w.Events("/v1/asp/inbox/events", w.Tokens[seller], "0")
		for e := next(); ; e = next() {
			if shows(e.Data, append(marks, quiet)...) {
				t.Errorf("an event of the other side's inbox is %s", e.Data)
			}
			if strings.Contains(e.Data, string(asked.Message)) {
				break
			}
		}
	}
	looks()
	most := float64(allowed)
	_, err = w.Client(boss).Session(id).Rule(w.Ctx, string(asked.Message), client.Ruling{
		Decision: performatives.Modified, Comment: "not above " + marked, SealComment: true,
		Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD", TermPath: "terms.price"},
	})
	testkit.Must(t, err)
	looks()
	if got := w.Send("POST", path+"/messages", w.Tokens[seller], `{"performative":"INFORM","body":{"type":"resolution","data":{"escalationId":"`+string(asked.Message)+`","decision":"denied"}}}`); shows(string(got.Body), append(marks, quiet)...) {
		t.Errorf("a refusal of the other side says %s", got.Body)
	}
	outside := performatives.Agent("agent://help.example/counsel") // who may act for the buyer, and is not of its organisation
	_, err = w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: outside})
	testkit.Must(t, err)
	says(buyer, "DELEGATE", `{"targetAgent":"`+string(outside)+`","scope":"the price","authority":"full"}`)
	if got := w.Send("POST", path+"/messages", w.Token(api.AddToken{Agent: outside}), `{"performative":"COUNTER","body":{"proposalId":"p2","referenceId":"p1","terms":{"price":{"amount":999146285017,"currency":"USD"}}}}`); got.StatusCode != http.StatusForbidden || shows(string(got.Body), marks...) {
		t.Errorf("the refusal of a delegate of another organisation says %d %s", got.StatusCode, got.Body)
	}
	says(buyer, "COUNTER", `{"proposalId":"p2","referenceId":"p1","terms":{"price":{"amount":400000,"currency":"USD"}}}`)
	says(seller, "ACCEPT", `{"referenceId":"p2"}`)
	closed := says(buyer, "CLOSE", `{"outcome":"completed"}`)
	woken.until(fmt.Sprintf(`"since":%d`, closed.Sequence))
	pushed.until("TASK_STATE_COMPLETED")

	for _, e := range logged.All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); shows(text, marks...) {
			t.Errorf("the log has %s", text)
		}
	}
	testkit.Must(t, inside.Flush())
	for told, err := events.NextMsg(testkit.Patience); ; told, err = events.NextMsg(testkit.Patience) {
		testkit.Must(t, err)
		if shows(string(told.Data), append(marks, quiet)...) {
			t.Errorf("%s tells %s", told.Subject, told.Data)
		}
		if strings.Contains(string(told.Data), "CLOSED") {
			break
		}
	}
	ctx, cancel := context.WithTimeout(w.Ctx, time.Minute)
	defer cancel()
	stored(ctx, t, w)
}

// A hook is a webhook of the other side.
type hook struct {
	*httptest.Server
	w      *testkit.World
	bodies chan string
}

func webhook(w *testkit.World) hook {
	bodies := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	w.Cleanup(s.Close)
	return hook{s, w, bodies}
}

// until reads what the webhook was sent, up to what says last.
func (h hook) until(last string) {
	h.w.Helper()
	for {
		select {
		case body := <-h.bodies:
			if shows(body, append(marks, quiet)...) {
				h.w.Errorf("a webhook is told %s", body)
			}
			if strings.Contains(body, last) {
				return
			}
		case <-h.w.Ctx.Done():
			h.w.Fatalf("no webhook is told %s", last)
		}
	}
}

// stored looks into all streams: what is sealed is in the headers of transcripts and of the own side's
// inboxes, and in the own side's approvals, and nowhere else.
func stored(ctx context.Context, t *testing.T, w *testkit.World) {
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(t, err)
	found := 0
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		s, err := js.Stream(ctx, info.Config.Name)
		testkit.Must(t, err)
		for n := info.State.FirstSeq; n <= info.State.LastSeq && info.State.Msgs > 0; n++ {
			m, err := s.GetMsg(ctx, n)
			if err != nil {
				continue // it was deleted
			}
			header, err := json.Marshal(m.Header)
			testkit.Must(t, err)
			switch whose := strings.Contains(m.Subject, "acme_com"); {
			case shows(string(header), marks...) && (strings.HasPrefix(m.Subject, "asp.session.") || whose && strings.Contains(m.Subject, ".inbox.")):
				found++
			case whose && strings.HasPrefix(m.Subject, "asp.escalation."):
			case shows(string(m.Data)+string(header), marks...):
				t.Errorf("%s has %s %s", m.Subject, header, m.Data)
			}
		}
	}
	testkit.Must(t, streams.Err())
	if found == 0 {
		t.Error("what is sealed is stored nowhere")
	}
}
