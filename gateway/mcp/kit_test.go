package mcpgateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A trader has the kit alone, and counts what goes in and out.
type trader struct {
	assistant
	calls, bytes int
}

func (w world) trader(agent performatives.Agent) *trader {
	w.Helper()
	return &trader{assistant: w.connects(w.Tokens[agent], "")}
}

// seen is what the kit's tools answer.
type seen struct {
	Status    string
	ID        performatives.SessionID `json:"negotiationId"`
	State     string
	Head      string
	Offer     string
	Reference string `json:"referenceId"`
	Duplicate bool
	Outcome   string
	Agreed    string
	Offers    []struct {
		ID, Text, Status string
		Mine             bool
		Terms            anything
	}
	Moves []struct {
		Action    string
		Reference string `json:"referenceId"`
		Fill      []string
		Optional  []string
		Says      string
	}
	Said []struct {
		From performatives.Agent
		Act  string `json:"performative"`
		Body anything
	}
	Found []struct {
		Agent performatives.Agent `json:"agentId"`
	}
	Invited []performatives.Agent
	Next    struct {
		Tool      string
		Arguments anything
	}
	Now *seen
}

// calls has a tool run that must accept.
func (a *trader) call(tool string, args anything) (s seen) {
	a.w.Helper()
	res, err := a.try(a.w.Ctx, tool, args)
	testkit.Must(a.w, err)
	if res.IsError {
		a.w.Fatalf("%s %v is refused: %s", tool, args, textOf(res))
	}
	in, err := json.Marshal(anything{"name": tool, "arguments": args})
	testkit.Must(a.w, err)
	out, err := json.Marshal(res)
	testkit.Must(a.w, err)
	a.calls, a.bytes = a.calls+1, a.bytes+len(in)+len(out)
	testkit.Must(a.w, json.Unmarshal([]byte(textOf(res)), &s))
	return s
}

// respond takes a move.
func (a *trader) respond(id performatives.SessionID, action string, more anything) seen {
	a.w.Helper()
	args := anything{"negotiationId": id, "action": action}
	for name, value := range more {
		args[name] = value
	}
	return a.call("respond_to_negotiation", args)
}

// GATEWAYS.md G9: with the five tools alone a purchase with three offers takes each side at most six
// calls and 12 KB in and out.
func TestMCPKitPurchase(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"asp/1", "bilateral/1"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := world{testkit.NewHosted(t, testkit.Options{})}
			buyer, vendor := w.trader(cron), w.trader(seller)
			sold := make(chan error, 1)
			go func() {
				sold <- sells(vendor, mode)
			}()
			opened := buyer.call("open_negotiation", anything{"with": []any{seller}, "purpose": "1,000 cups", "mode": mode, "terms": anything{"price": 4, "count": 1000}, "seconds": 50})
			if opened.Offer != "sent" {
				t.Fatalf("the first offer is %q", opened.Offer)
			}
			turn := buyer.call(opened.Next.Tool, opened.Next.Arguments)
			last := turn.Offers[len(turn.Offers)-1]
			if turn.Status != "turn" || last.Mine || last.Terms["price"] != 6.0 || last.Terms["count"] != 1000.0 || !strings.Contains(last.Text, "6") {
				t.Fatalf("the buyer is shown %+v", turn)
			}
			answer := buyer.respond(opened.ID, "counter", anything{"terms": anything{"price": 5}, "ifHead": turn.Head, "seconds": 50})
			if answer.Now == nil {
				t.Fatalf("the counter is answered %+v", answer)
			}
			if mode == "asp/1" { // the vendor commits to what it accepted
				turn = buyer.call("wait_for_turn", anything{"negotiationId": opened.ID})
				if turn.Status != "turn" {
					t.Fatalf("of the commitment the buyer is told %+v", turn)
				}
				buyer.respond(opened.ID, "accept", nil)
			}
			testkit.Must(t, <-sold)
			for name, side := range map[string]*trader{"buyer": buyer, "vendor": vendor} {
				t.Logf("%s: %d calls, %d bytes", name, side.calls, side.bytes)
				if side.calls > 6 || side.bytes > 12<<10 {
					t.Errorf("the %s takes %d calls and %d bytes", name, side.calls, side.bytes)
				}
			}
			if now := buyer.call("get_negotiation", anything{"negotiationId": opened.ID}); now.Agreed == "" || len(now.Offers) != 3 || now.Offers[2].Terms["price"] != 5.0 || now.Offers[2].Terms["count"] != 1000.0 {
				t.Errorf("the negotiation is %+v", now)
			}
		})
	}
}

// sells is the vendor's side of the purchase.
func sells(vendor *trader, mode string) error {
	invited := vendor.call("wait_for_turn", nil)
	offered := vendor.respond(invited.ID, "accept", anything{"seconds": 50})
	if offered.Now == nil || offered.Now.Status != "turn" {
		return fmt.Errorf("after it accepted, the vendor is told %+v", offered.Now)
	}
	countered := vendor.respond(invited.ID, "COUNTER", anything{"terms": anything{"price": 6}, "message": "cups cost more", "seconds": 50})
	if countered.Now == nil || countered.Now.Status != "turn" {
		return fmt.Errorf("after its counter, the vendor is told %+v", countered.Now)
	}
	vendor.respond(invited.ID, "accept", nil)
	if mode != "asp/1" {
		return nil
	}
	if committed := vendor.respond(invited.ID, "commit", anything{"terms": anything{"obligations": []any{anything{"party": seller, "action": "deliver 1,000 cups"}}}, "seconds": 50}); committed.Now == nil {
		return fmt.Errorf("its commitment is answered %+v", committed)
	}
	return nil
}

// Nothing is said into a view that is not the newest, or twice under one key; a refusal names moves.
func TestMCPKitRefusals(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.trader(cron), w.trader(seller)
	opened := buyer.call("open_negotiation", anything{"with": []any{seller}, "purpose": "cups", "terms": anything{"price": 4}, "seconds": 0, "idempotencyKey": "open"})
	if !strings.HasPrefix(opened.Offer, "not sent") || opened.State != "INVITED" {
		t.Fatalf("an offer before the invitation is accepted is %+v", opened)
	}
	id := opened.ID
	refused := func(a *trader, code string, args anything) string {
		t.Helper()
		args["negotiationId"] = id
		return textOf(a.refused("respond_to_negotiation", code, args))
	}
	if text := refused(vendor, "wrong_state", anything{"action": "propose", "terms": anything{"price": 1}}); !strings.Contains(text, `"allowed":["accept",`) {
		t.Errorf("what is no move is refused %s", text)
	}
	refused(vendor, "malformed", anything{"action": "buy"})
	refused(vendor, "malformed", anything{"action": "accept", "idempotencyKey": "a"})
	stale := vendor.call("get_negotiation", anything{"negotiationId": id})
	vendor.respond(id, "accept", anything{"ifHead": stale.Head, "referenceId": "invitation", "idempotencyKey": "a"})
	if again := vendor.respond(id, "accept", anything{"ifHead": stale.Head, "referenceId": "invitation", "idempotencyKey": "a"}); !again.Duplicate {
		t.Errorf("what is said again is %+v", again)
	}
	refused(buyer, "chain_conflict", anything{"action": "propose", "terms": anything{"price": 4}, "ifHead": stale.Head})
	if text := refused(buyer, "wrong_state", anything{"action": "accept"}); !strings.Contains(text, "ACCEPT is not allowed while INTRODUCED") {
		t.Errorf("an acceptance of nothing is refused %s", text)
	}
	if now := buyer.call("get_negotiation", anything{"negotiationId": id}); len(now.Offers) != 0 {
		t.Errorf("what was refused is there: %+v", now.Offers)
	}
	repeat := anything{"with": []any{seller}, "purpose": "cups", "terms": anything{"price": 4}, "idempotencyKey": "open"}
	first := buyer.call("open_negotiation", repeat)
	if second := buyer.call("open_negotiation", repeat); first.ID != id || first.Offer != "sent" || second.ID != id {
		t.Errorf("the call that is repeated is %+v, then %+v", first, second)
	}
	turn := vendor.call("get_negotiation", anything{"negotiationId": id})
	if len(turn.Offers) != 1 || turn.Status != "turn" || !slices.ContainsFunc(turn.Said, func(e struct {
		From performatives.Agent
		Act  string `json:"performative"`
		Body anything
	}) bool {
		return e.From == cron
	}) {
		t.Fatalf("the vendor is shown %+v", turn)
	}
	refused(buyer, "own_proposal", anything{"action": "accept", "referenceId": turn.Offers[0].ID})
	vendor.respond(id, "ask", anything{"message": "per cup?"})
	refused(vendor, string(session.ClarificationPending), anything{"action": "accept"})
	buyer.respond(id, "answer", anything{"message": "yes"})
	for _, terms := range []any{nil, anything{}, anything{"price": 4}} {
		same := anything{"action": "counter", "referenceId": turn.Offers[0].ID, "terms": terms}
		if terms == nil {
			delete(same, "terms")
		}
		if text := refused(vendor, "malformed", same); !strings.Contains(text, "change nothing of "+turn.Offers[0].ID+": name what you change, or accept it") {
			t.Errorf("a counter of the same terms is refused %s", text)
		}
	}
	countered := anything{"referenceId": turn.Offers[0].ID, "terms": anything{"price": 6}, "idempotencyKey": "6"}
	vendor.respond(id, "counter", countered)
	if again := vendor.respond(id, "counter", countered); !again.Duplicate {
		t.Errorf("a counter that is said again is %+v", again)
	}
	buyer.respond(id, "ask", anything{"fills": anything{"subject": "do you deliver?", "queryType": "delivery"}})
	vendor.respond(id, "answer", anything{"message": "on Mondays"})
	refused(vendor, "own_proposal", anything{"action": "accept"})
	buyer.call("get_negotiation", anything{"negotiationId": id})
	buyer.respond(id, "reject", anything{"reason": "too expensive"})
	for _, action := range []string{"accept", "counter", "reject", "clarify"} {
		if text := refused(buyer, "proposal_unknown", anything{"action": action, "terms": anything{"price": 5}, "message": "m"}); !strings.Contains(text, "nothing waits for your "+strings.ToUpper(action)+". Allowed for you: PROPOSE, ") {
			t.Errorf("%s of nothing is refused %s", action, text)
		}
	}
	refused(buyer, "malformed", anything{"action": "close", "fills": anything{"outcome.why.0": 1}})
	if over := buyer.respond(id, "close", anything{"fills": anything{"outcome": "failed"}}); over.State != "CLOSED" || over.Next.Tool != "" {
		t.Errorf("after CLOSE: %+v", over)
	}
	if text := refused(vendor, "wrong_state", anything{"action": "counter", "terms": anything{"price": 5}}); !strings.Contains(text, "the session is over: failed") {
		t.Errorf("a counter after the end is refused %s", text)
	}
}

// Index's clients find its tools in the kit as they know them.
func TestMCPKitTakesIndexsTurns(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.trader(cron), w.trader(seller)
	opened := buyer.call("open_negotiation", anything{"with": []any{seller}, "purpose": "cups", "mode": "bilateral/1"})
	index := func(a *trader, action string) {
		t.Helper()
		a.call("respond_to_negotiation", anything{
			"negotiationId": opened.ID, "action": action, "reasoning": "r", "suggestedRoles": anything{"ownUser": "peer", "otherUser": "agent"},
		})
	}
	index(vendor, "accept")
	index(buyer, "propose")
	index(vendor, "question")
	index(buyer, "accept")
}

// GATEWAYS.md G9: by default there are five tools; instructions, prompts and descriptions name no other.
func TestMCPKitNamesNoOther(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	some, every := w.connects(w.Tokens[cron], ""), w.assistant(w.Tokens[cron])
	listed, err := some.ListTools(w.Ctx, nil)
	testkit.Must(t, err)
	all, err := every.ListTools(w.Ctx, nil)
	testkit.Must(t, err)
	names, told := []string{}, some.InitializeResult().Instructions
	for _, tool := range listed.Tools {
		names, told = append(names, tool.Name), told+tool.Description
	}
	slices.Sort(names)
	if want := []string{"get_negotiation", "list_negotiations", "open_negotiation", "respond_to_negotiation", "wait_for_turn"}; !slices.Equal(names, want) {
		t.Errorf("the tools are %v, want %v", names, want)
	}
	for _, tool := range all.Tools {
		if strings.Contains(tool.Name, "_") && !slices.Contains(names, tool.Name) && strings.Contains(told, tool.Name) {
			t.Errorf("the kit tells of %s", tool.Name)
		}
	}
	if len(all.Tools) != 19 || !strings.Contains(every.InitializeResult().Instructions, "find_agents") {
		t.Errorf("there are %d tools in all", len(all.Tools))
	}
}

// open_negotiation finds who does a task, and invites nobody without a purpose.
func TestMCPKitFinds(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer := w.trader(cron)
	found := buyer.call("open_negotiation", anything{"find": "sell cups"})
	if found.ID != "" || len(found.Found) == 0 {
		t.Errorf("it finds %+v", found)
	}
	for _, args := range []anything{{}, {"with": []any{seller}}, {"with": []any{seller}, "find": "cups", "purpose": "cups"}, {"find": "cups", "purpose": "cups", "idempotencyKey": "k"}} {
		buyer.refused("open_negotiation", "malformed", args)
	}
}

// What was agreed is carried out by actions of their own: no message is taken for a delivery or a waiver.
func TestMCPKitCarriesOut(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, vendor := w.trader(cron), w.trader(seller)
	opened := make(chan seen, 1)
	go func() {
		opened <- buyer.call("open_negotiation", anything{"with": []any{seller}, "purpose": "cups", "terms": anything{"price": 4}, "seconds": 50})
	}()
	id := vendor.call("wait_for_turn", nil).ID
	vendor.respond(id, "accept", anything{"seconds": 50})
	<-opened
	vendor.respond(id, "accept", anything{"referenceId": vendor.call("get_negotiation", anything{"negotiationId": id}).Offers[0].ID})
	vendor.respond(id, "commit", anything{"terms": anything{"obligations": []any{anything{"party": seller, "action": "deliver cups", "quantity": 10, "verificationMethod": "counting"}}}})
	committed := buyer.call("get_negotiation", anything{"negotiationId": id})
	i := slices.IndexFunc(committed.Moves, func(m struct {
		Action    string
		Reference string `json:"referenceId"`
		Fill      []string
		Optional  []string
		Says      string
	}) bool {
		return m.Action == "accept"
	})
	buyer.respond(id, "accept", anything{"referenceId": committed.Moves[i].Reference})
	if owed := vendor.call("wait_for_turn", anything{"negotiationId": id}); owed.Status != "turn" {
		t.Fatalf("what is due is no turn: %+v", owed)
	}
	vendor.respond(id, "inform", anything{"message": "they are on their way"})
	if _, err := vendor.try(w.Ctx, "respond_to_negotiation", anything{"negotiationId": id, "action": "waive", "message": "never mind"}); err != nil {
		t.Fatal(err)
	}
	if now := vendor.call("get_negotiation", anything{"negotiationId": id}); now.State != session.Executing.String() {
		t.Fatalf("a message, and a waiver of who owes, changed it: %+v", now)
	}
	for _, fills := range []anything{{"quantity": 6}, {"data.qty": 6}, {"note": "half"}} {
		refused := textOf(vendor.refused("respond_to_negotiation", "malformed", anything{"negotiationId": id, "action": "deliver", "fills": fills}))
		if !strings.Contains(refused, "data.quantity, data.unit, data.evidence") {
			t.Errorf("fills that a delivery does not have are refused %s", refused)
		}
	}
	for _, m := range vendor.call("get_negotiation", anything{"negotiationId": id}).Moves {
		if m.Action == "deliver" && !slices.Contains(m.Optional, "data.quantity") {
			t.Errorf("the move does not say that it may be of a part: %+v", m)
		}
	}
	vendor.respond(id, "deliver", anything{"fills": anything{"data.quantity": 6}})
	buyer.call("get_negotiation", anything{"negotiationId": id})
	buyer.respond(id, "accept", nil)
	buyer.respond(id, "waive", anything{"message": "six are enough"})
	if closed := buyer.respond(id, "close", nil); closed.State != session.Closed.String() {
		t.Errorf("after it was carried out: %+v", closed)
	}
}
