package mcpgateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// A world is a broker and assistants who speak to it by MCP.
type world struct{ *testkit.World }

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// assistant connects an MCP client with a token, to all tools.
func (w world) assistant(token string) assistant { return w.connects(token, mcpgateway.AllTools) }

func (w world) connects(token, set string) assistant {
	w.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.Ctx, &mcp.StreamableClientTransport{
		Endpoint: "http://" + w.HTTPAddr + "/mcp" + set, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true,
	}, nil)
	testkit.Must(w, err)
	w.Cleanup(func() { s.Close() })
	return assistant{w, s}
}

// An assistant calls tools.
type assistant struct {
	w world
	*mcp.ClientSession
}

// try calls a tool.
func (a assistant) try(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	return a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
}

// does calls a tool that must be accepted, and reads its result.
func (a assistant) does(tool string, args map[string]any, into any) *mcp.CallToolResult {
	a.w.Helper()
	res, err := a.try(a.w.Ctx, tool, args)
	testkit.Must(a.w, err)
	if res.IsError {
		a.w.Fatalf("%s is refused: %s", tool, textOf(res))
	}
	if into != nil {
		data, err := json.Marshal(res.StructuredContent)
		testkit.Must(a.w, err)
		testkit.Must(a.w, json.Unmarshal(data, into))
	}
	return res
}

// refused calls a tool that must be refused with a code.
func (a assistant) refused(tool, code string, args map[string]any) *mcp.CallToolResult {
	a.w.Helper()
	res, err := a.try(a.w.Ctx, tool, args)
	testkit.Must(a.w, err)
	if text := textOf(res); !res.IsError || !strings.Contains(text, `"`+code+`"`) {
		a.w.Errorf("%s is answered %s, want the code %s", tool, text, code)
	}
	return res
}

func textOf(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if text, is := c.(*mcp.TextContent); is {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

type said struct {
	Session   performatives.SessionID `json:"sessionId"`
	Sequence  uint64                  `json:"sequenceNumber"`
	Reference string                  `json:"referenceId"`
	State     string                  `json:"state"`
	Next      struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
	} `json:"next"`
}

type waitedFor struct {
	Status     string                  `json:"status"`
	Session    performatives.SessionID `json:"sessionId"`
	Reference  string                  `json:"referenceId"`
	Escalation struct {
		Status    string `json:"status"`
		DecidedBy string `json:"decidedBy"`
	} `json:"escalation"`
	Allowed []string `json:"allowed"`
}

// failed is a refusal.
type failed struct {
	Allowed []string `json:"allowed"`
}

// afterLine is a refusal's JSON, which its sentence precedes.
func afterLine(text string) string { _, data, _ := strings.Cut(text, "\n"); return data }

type anything = map[string]any

// GATEWAYS.md G6: two assistants with tokens negotiate to an agreement, and verify it.
func TestMCPNegotiation(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	var opened, offer, accepted said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "1,000 cups", "invitationTimeoutMs": 600000}, &opened)
	var turn waitedFor
	vendor.does("wait_for_turn", anything{}, &turn)
	if turn.Status != "turn" || turn.Session != opened.Session || turn.Reference != "invitation" {
		t.Fatalf("the vendor is told %+v", turn)
	}
	var first failed
	testkit.Must(t, json.Unmarshal([]byte(afterLine(textOf(vendor.refused("propose", "wrong_state", anything{
		"sessionId": turn.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5},
	})))), &first))
	if !slices.Contains(first.Allowed, "accept") || slices.Contains(first.Allowed, "withdraw") || slices.Contains(first.Allowed, "propose") {
		t.Errorf("an invitee may use %v", first.Allowed)
	}
	vendor.refused("withdraw", "unauthorized", anything{"sessionId": turn.Session, "referenceId": turn.Reference})
	vendor.does("accept", anything{"sessionId": turn.Session, "referenceId": turn.Reference}, nil)
	buyer.does(opened.Next.Tool, opened.Next.Arguments, &turn)
	if turn.Status != "news" || len(turn.Allowed) == 0 {
		t.Errorf("the buyer is told %+v", turn)
	}
	buyer.refused("commit", "wrong_state", anything{"sessionId": opened.Session, "referenceId": "p", "terms": anything{"obligations": []any{anything{"party": cron, "action": "pay"}}}})
	buyer.does("propose", anything{"sessionId": opened.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}}, &offer)
	buyer.refused("accept", "own_proposal", anything{"sessionId": opened.Session, "referenceId": offer.Reference})
	vendor.does("wait_for_turn", anything{"sessionId": opened.Session}, &turn)
	if turn.Status != "turn" || turn.Reference != offer.Reference {
		t.Errorf("the vendor is told %+v, want %s", turn, offer.Reference)
	}
	vendor.does("ask", anything{"sessionId": opened.Session, "referenceId": offer.Reference, "questions": []any{anything{"field": "terms.price", "question": "per cup?"}}}, nil)
	vendor.refused("accept", "clarification_pending", anything{"sessionId": opened.Session, "referenceId": offer.Reference})
	buyer.does("answer", anything{"sessionId": opened.Session, "referenceId": offer.Reference, "answers": []any{anything{"field": "terms.price", "answer": "yes"}}}, nil)
	vendor.does("counter", anything{"sessionId": opened.Session, "referenceId": offer.Reference, "terms": anything{"price": 6}}, &offer)
	buyer.does("accept", anything{"sessionId": opened.Session, "referenceId": offer.Reference}, &accepted)
	var verified struct {
		Verified bool   `json:"verified"`
		Entries  uint64 `json:"entries"`
	}
	buyer.does("verify_transcript", anything{"sessionId": opened.Session}, &verified)
	if !verified.Verified || verified.Entries != accepted.Sequence+1 {
		t.Errorf("the transcript is %+v, want %d entries", verified, accepted.Sequence+1)
	}
	buyer.does("close", anything{"sessionId": opened.Session, "outcome": "completed"}, nil)
	vendor.does("wait_for_turn", anything{"sessionId": opened.Session}, &turn)
	if turn.Status != "over" {
		t.Errorf("after CLOSE the vendor is told %+v", turn)
	}
	var listed struct {
		Success bool `json:"success"`
		Data    struct {
			Count        int `json:"count"`
			Negotiations []struct {
				ID     performatives.SessionID `json:"id"`
				Role   string                  `json:"role"`
				Status string                  `json:"status"`
			} `json:"negotiations"`
		} `json:"data"`
	}
	vendor.does("list_negotiations", anything{"status": "completed"}, &listed)
	if d := listed.Data; !listed.Success || d.Count != 1 || d.Negotiations[0].ID != opened.Session || d.Negotiations[0].Role != "candidate" {
		t.Errorf("the vendor lists %+v", listed)
	}
	reader := w.assistant(w.Token(api.AddToken{Agent: seller, ReadOnly: true}))
	reader.does("get_transcript", anything{"sessionId": opened.Session}, nil)
	reader.refused("close", "unauthorized", anything{"sessionId": opened.Session})
	spy := w.assistant(w.Tokens[other])
	there := textOf(spy.refused("get_transcript", "unknown_session", anything{"sessionId": opened.Session}))
	if nowhere := textOf(spy.refused("get_transcript", "unknown_session", anything{"sessionId": testkit.NewSession()})); there != nowhere {
		t.Errorf("a non-participant learns that a session is there:\n%s\n%s", there, nowhere)
	}
}

// GATEWAYS.md G6: escalate answers at once with the item, who is asked and until when; the
// assistant can decide nothing, and wait_for_turn brings the human's ruling.
func TestMCPEscalation(t *testing.T) {
	t.Parallel()
	const alice = performatives.Agent("human://acme.com/alice")
	w := world{testkit.NewHosted(t, testkit.Options{})}
	w.Principal(alice)
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	var opened, offer said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "1,000 cups", "invitationTimeoutMs": 600000}, &opened)
	vendor.does("accept", anything{"sessionId": opened.Session, "referenceId": "invitation"}, nil)
	vendor.does("propose", anything{"sessionId": opened.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}}, &offer)
	var asked struct {
		said
		Escalation struct {
			ID       string   `json:"escalationId"`
			Asked    []string `json:"asked"`
			Deadline string   `json:"deadline"`
		} `json:"escalation"`
	}
	buyer.does("escalate", anything{"sessionId": opened.Session, "reason": "authority-limit", "urgency": "high", "context": "5 each?", "referenceId": offer.Reference}, &asked)
	if e := asked.Escalation; e.ID == "" || len(e.Asked) == 0 || e.Deadline == "" || asked.State != "ESCALATED" || asked.Next.Tool != "wait_for_turn" {
		t.Fatalf("escalate is answered %+v", asked)
	}
	buyer.refused("accept", "session_escalated", anything{"sessionId": opened.Session, "referenceId": offer.Reference})
	buyer.refused("answer", "unauthorized", anything{"sessionId": opened.Session, "type": "resolution", "data": anything{"escalationId": asked.Escalation.ID, "decision": "approved"}})
	ruled := make(chan waitedFor)
	go func() {
		var turn waitedFor
		buyer.does(asked.Next.Tool, asked.Next.Arguments, &turn)
		ruled <- turn
	}()
	_, err := w.Client(alice).Session(opened.Session).Rule(w.Ctx, asked.Escalation.ID, client.Ruling{Decision: performatives.Approved})
	testkit.Must(t, err)
	if turn := <-ruled; turn.Status != "turn" || turn.Reference != offer.Reference || turn.Escalation.Status != performatives.Approved || turn.Escalation.DecidedBy != string(alice) {
		t.Errorf("the ruling comes as %+v", turn)
	}
	buyer.does("accept", anything{"sessionId": opened.Session, "referenceId": offer.Reference}, nil)
}

// In a mode that binds, the installation signs the agreement for assistants of hosted agents.
func TestMCPBinding(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	var opened, offer said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "1,000 cups", "mode": "binding/1", "policy": anything{"publish": []any{"price"}}, "invitationTimeoutMs": 600000}, &opened)
	vendor.does("accept", anything{"sessionId": opened.Session, "referenceId": "invitation"}, nil)
	buyer.does("propose", anything{"sessionId": opened.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}}, &offer)
	counter := anything{"sessionId": opened.Session, "referenceId": offer.Reference, "terms": anything{"price": 6}, "idempotencyKey": "once"}
	vendor.does("counter", counter, nil)
	vendor.does("counter", counter, &offer)
	var shown struct {
		Data struct{ Publish, Consent any }
	}
	if buyer.does("get_negotiation", anything{"negotiationId": opened.Session}, &shown); fmt.Sprint(shown.Data.Publish) != "[price]" || !strings.HasSuffix(fmt.Sprint(shown.Data.Consent), ": price.") {
		t.Errorf("who is to accept is told that %+v is published", shown.Data)
	}
	buyer.does("accept", anything{"sessionId": opened.Session, "referenceId": offer.Reference, "idempotencyKey": "accept"}, nil)
	var agreed api.Agreements
	w.Send("GET", "/v1/asp/agreements", w.Tokens[cron], "").Is(http.StatusOK, &agreed)
	if len(agreed.Agreements) != 1 {
		t.Fatalf("the agreements are %+v, want one", agreed)
	}
	var document agreement.Document
	w.Send("GET", "/v1/asp/agreements/"+string(agreed.Agreements[0].Agreement), w.Tokens[cron], "").Is(http.StatusOK, &document)
	if len(document.Signatures) != 2 {
		t.Errorf("the agreement is signed by %v, want both", document.Signatures)
	}
}

// GATEWAYS.md G9: an assistant that calls wait_for_turn again and again without arguments is told
// of an invitation at once only once. Later calls wait, and then tell it of what still waits.
func TestMCPWaitWithoutCursor(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	var opened said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "1,000 cups", "invitationTimeoutMs": 600000}, &opened)
	for n := range 3 {
		var turn waitedFor
		began := time.Now()
		vendor.does("wait_for_turn", anything{"seconds": 1}, &turn)
		if turn.Status != "turn" || turn.Session != opened.Session || turn.Reference != "invitation" {
			t.Errorf("call %d is answered %+v", n, turn)
		}
		if took := time.Since(began); n > 0 && took < 900*time.Millisecond {
			t.Errorf("call %d is answered after %s, want it to wait a second", n, took)
		}
	}
	waited := make(chan waitedFor)
	go func() {
		var turn waitedFor
		vendor.does("wait_for_turn", anything{}, &turn)
		waited <- turn
	}()
	var second said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "lids", "invitationTimeoutMs": 600000}, &second)
	if turn := <-waited; turn.Session != second.Session {
		t.Errorf("of a new invitation the vendor is told %+v", turn)
	}
}

// GATEWAYS.md G9: Index's tools show an offer's terms in every mode; a counter that names some
// terms changes those and keeps the rest.
func TestMCPCounterKeepsTerms(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	for _, mode := range []string{"asp/1", "bilateral/1"} {
		var opened said
		buyer.does("open_session", anything{"with": []any{seller}, "purpose": "cups", "mode": mode, "invitationTimeoutMs": 600000}, &opened)
		vendor.does("accept", anything{"sessionId": opened.Session, "referenceId": "invitation"}, nil)
		turn := func(a assistant, action string, terms anything) {
			t.Helper()
			a.does("respond_to_negotiation", anything{
				"negotiationId": opened.Session, "action": action, "reasoning": "r", "suggestedRoles": anything{"ownUser": "peer", "otherUser": "peer"}, "terms": terms,
			}, nil)
		}
		if mode == "asp/1" {
			buyer.does("propose", anything{"sessionId": opened.Session, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5, "count": 1000}}, nil)
		} else {
			turn(buyer, "propose", anything{"price": 5, "count": 1000})
		}
		turn(vendor, "counter", anything{"price": 6})
		var shown struct {
			Data struct {
				Count int `json:"turnCount"`
				Turns []struct {
					Terms anything `json:"terms"`
				} `json:"turns"`
			} `json:"data"`
		}
		buyer.does("get_negotiation", anything{"negotiationId": opened.Session}, &shown)
		turns := shown.Data.Turns
		if len(turns) != 2 || turns[0].Terms["price"] != 5.0 || turns[1].Terms["price"] != 6.0 || turns[1].Terms["count"] != 1000.0 {
			t.Errorf("%s: the turns are %+v", mode, turns)
		}
		var listed struct {
			Data struct {
				Negotiations []struct {
					Count int      `json:"turnCount"`
					Terms anything `json:"latestTerms"`
				} `json:"negotiations"`
			} `json:"data"`
		}
		buyer.does("list_negotiations", anything{"limit": 1}, &listed)
		if rows := listed.Data.Negotiations; len(rows) != 1 || rows[0].Terms["price"] != 6.0 || rows[0].Terms["count"] != 1000.0 || rows[0].Count != 2 || shown.Data.Count != 2 {
			t.Errorf("%s: the list has %+v", mode, rows)
		}
	}
}

// A list has each negotiation in short, and marks those in which the counterparty wrote something.
func TestMCPListBounded(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller])
	var opened said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "cups", "mode": "asp/1", "invitationTimeoutMs": 600000}, &opened)
	vendor.does("accept", anything{"sessionId": opened.Session, "referenceId": "invitation"}, nil)
	long := strings.Repeat("x", 100<<10)
	vendor.does("propose", anything{"sessionId": opened.Session, "type": "offer", "subject": "cups", "message": long, "terms": anything{"price": 5, "text": long}}, nil)
	for who, quoted := range map[*assistant]bool{&buyer: true, &vendor: true} { // the buyer wrote the purpose, the vendor the offer
		res, err := who.try(w.Ctx, "list_negotiations", anything{})
		testkit.Must(t, err)
		var listed struct {
			Data struct {
				Negotiations []struct {
					Quoted    bool     `json:"quoted"`
					Truncated bool     `json:"truncated"`
					Terms     anything `json:"latestTerms"`
				} `json:"negotiations"`
				Notice string `json:"notice"`
			} `json:"data"`
		}
		text := textOf(res)
		testkit.Must(t, json.Unmarshal([]byte(text), &listed))
		rows := listed.Data.Negotiations
		if len(text) > 4<<10 || len(rows) != 1 || rows[0].Quoted != quoted || !rows[0].Truncated || rows[0].Terms["price"] != 5.0 || listed.Data.Notice == "" {
			t.Errorf("the list has %d bytes: %.4000s", len(text), text)
		}
	}
}

// The list and the negotiation count all turns, also those before the entries that the negotiation
// shows; who was asked to act for a side and has not joined is told the number only.
func TestMCPCountsTurns(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor, asked := w.assistant(w.Tokens[cron]), w.assistant(w.Tokens[seller]), w.assistant(w.Tokens[other])
	var opened said
	buyer.does("open_session", anything{"with": []any{seller}, "purpose": "cups", "mode": "asp/1", "invitationTimeoutMs": 600000}, &opened)
	id := opened.Session
	vendor.does("accept", anything{"sessionId": id, "referenceId": "invitation"}, nil)
	buyer.does("propose", anything{"sessionId": id, "type": "service-agreement", "subject": "cups", "terms": anything{"price": 5}}, nil)
	for range 200 { // more than there are in a page, in entries and in bytes
		vendor.does("answer", anything{"sessionId": id, "type": "fact", "data": anything{"text": strings.Repeat("x", 2*api.MaxPageBytes/200)}}, nil)
	}
	buyer.does("propose", anything{"sessionId": id, "type": "service-agreement", "subject": "mugs", "terms": anything{"price": 7}}, nil)
	buyer.does("delegate", anything{"sessionId": id, "targetAgent": other, "authority": "advisory", "scope": "all"}, nil)

	var shown struct {
		Data struct {
			Count int `json:"turnCount"`
			Turns []struct {
				Number int `json:"turnNumber"`
			} `json:"turns"`
		} `json:"data"`
	}
	buyer.does("get_negotiation", anything{"negotiationId": id}, &shown)
	if turns := shown.Data.Turns; shown.Data.Count != 2 || len(turns) != 1 || turns[0].Number != 2 {
		t.Errorf("the negotiation has %+v", shown.Data)
	}
	for _, who := range []assistant{buyer, asked} {
		var listed struct {
			Data struct {
				Negotiations []struct {
					Count int      `json:"turnCount"`
					Terms anything `json:"latestTerms"`
				} `json:"negotiations"`
			} `json:"data"`
		}
		who.does("list_negotiations", anything{}, &listed)
		rows := listed.Data.Negotiations
		if len(rows) != 1 || rows[0].Count != 2 || (rows[0].Terms["price"] == 7.0) != (who == buyer) {
			t.Errorf("the list has %+v", rows)
		}
	}
}
