package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// promises opens a session in which alpha owes beta what owed says of the time at which it is promised.
func promises(w *fault.Witness, owed func(now time.Time) []string) *fault.Session {
	s := w.Open(alpha, beta)
	s.Say(alpha, "OBSERVE", `{"subject":"on we go"}`)
	s.Say(beta, "COMMIT", `{"commitmentId":"k1","terms":{"obligations":[`+strings.Join(owed(time.Now()), ",")+`]}}`)
	s.Say(alpha, "ACCEPT", `{"referenceId":"k1"}`)
	return s
}

// owesBy is an obligation of alpha by a time.
func owesBy(id string, by time.Time) string {
	return fmt.Sprintf(`{"id":%q,"party":%q,"action":"deliver","deadline":%q}`, id, alpha, by.UTC().Format(time.RFC3339Nano))
}

// What the broker enters when a deadline has passed is entered once, wherever it is stopped, and the
// session goes on (COMMITMENTS.md C2).
func TestEventsAreEnteredOnce(t *testing.T) {
	t.Parallel()
	reached := []string{"before the append", "after the append", "after one of the inbox copies", "after the inbox copies", "after the timer", "after the index"}
	for _, point := range broker.Failpoints() {
		if !strings.Contains(strings.Join(reached, ";"), point) {
			continue // the broker answers nobody
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
			w := fault.NewWitness(t, b.URL)
			s := promises(w, func(now time.Time) []string { return []string{owesBy("0", now.Add(500*time.Millisecond))} })
			<-b.Broker.Command.StopAt(point)
			b.Crash()
			b.Up()
			if events := s.Events(1); len(events) != 1 || events[0].Event != performatives.Breached || events[0].Obligation != "0" {
				t.Errorf("it entered %+v", events)
			}
			delivered := s.Say(alpha, "INFORM", `{"type":"result","data":{"commitmentId":"k1","obligation":"0"}}`)
			s.Say(beta, "ACCEPT", fmt.Sprintf(`{"referenceId":%q}`, delivered.Message))
			s.Say(beta, "CLOSE", "{}")
			if events := s.Events(1); len(events) != 1 || s.State() != "CLOSED" {
				t.Errorf("%s after %+v", s.State(), events)
			}
			s.Check(alpha, beta)
		})
	}
}

// Who reads a session after a deadline sees what is entered then, and what may be said after it.
func TestPassedIsReadAsEntered(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	s := promises(w, func(now time.Time) []string { return []string{owesBy("0", now.Add(-time.Second))} })
	v, err := b.Broker.Parts.Reads.SessionSnapshot(t.Context(), api.Caller{Agent: beta}, api.GetSnapshot{Session: s.ID})
	testkit.Must(t, err)
	if len(v.Moves) == 0 || len(v.Obligations) != 1 || v.Obligations[0].Breaches != 1 {
		t.Errorf("moves %v, obligations %+v", v.Moves, v.Obligations)
	}
}

// What is entered at a deadline is in the inboxes before the next is entered.
func TestEventsAreDeliveredInTurn(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	s := promises(w, func(now time.Time) []string {
		due := now.Add(500 * time.Millisecond)
		return []string{owesBy("0", due), owesBy("1", due)}
	})
	var mu sync.Mutex
	var done []string
	b.Broker.Command.AtFailpoints(func(where string) {
		if where == "before the append" || where == "after one of the inbox copies" {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, where)
		}
	})
	one := []string{"before the append", "after one of the inbox copies", "after one of the inbox copies"}
	testkit.Eventually(t, "each of both is entered and copied", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(done) >= 6 && slices.Equal(done[len(done)-6:], slices.Concat(one, one))
	})
	s.Check(alpha, beta)
}

// After a time off line the broker enters what has passed meanwhile, in the order of time.
func TestEventsAfterAnOutage(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	var begin time.Time
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	s := promises(w, func(now time.Time) []string {
		begin = now
		return []string{
			owesBy("0", at(1500)), owesBy("last", at(1600)), owesBy("first", at(1400)),
			fmt.Sprintf(`{"id":"window","party":%q,"action":"deliver","quantity":1,"acceptanceWindowMs":1000}`, beta),
		}
	})
	s.Say(beta, "INFORM", `{"type":"result","data":{"commitmentId":"k1","obligation":"window"}}`)
	b.Crash()
	testkit.Eventually(t, "all of it is due", func() bool { return time.Now().After(at(3000)) })
	b.Up()
	var order []string
	for _, e := range s.Events(4) {
		order = append(order, e.Event+" "+string(e.Obligation))
	}
	if got := strings.ReplaceAll(strings.Join(order, ", "), "deemed window, ", ""); got != "breached first, breached 0, breached last" && got != "breached first, breached 0, breached last, deemed window" {
		t.Errorf("it entered %q", order)
	}
	s.Check(alpha, beta)
}

// A dispute that neither an arbiter nor the transcript decides stands in the escalation inbox of each
// organisation, also after a crash, until a human has answered it (COMMITMENTS.md C2).
func TestDisputesGoToPeople(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	bob := performatives.Agent("human://" + string(beta.Organisation()) + "/bob")
	for _, human := range []performatives.Agent{alice, bob} {
		if _, err := b.Broker.Parts.Registry.Add(t.Context(), api.Card{Agent: human}); err != nil {
			t.Fatal(err)
		}
	}
	s := promises(w, func(now time.Time) []string { return []string{owesBy("0", now.Add(time.Hour))} })
	s.Say(alpha, "INFORM", `{"type":"result","data":{"commitmentId":"k1","obligation":"0"}}`)
	subject := s.Say(beta, "OBSERVE", `{"subject":"the boxes"}`).Hash
	s.Say(beta, "INFORM", fmt.Sprintf(`{"type":"dispute","data":{"disputeId":"x1","subject":%q,"ground":"mismatch","claim":"broken","severity":4}}`, subject))

	inbox := func() (all []string) {
		t.Helper()
		var found api.Escalations
		w.Call(api.EscalationList.Name, `{"status":"all"}`, &found)
		for _, e := range found.Escalations {
			all = append(all, fmt.Sprint(e.Organisation, " ", e.Reason, " ", e.Dispute, " ", e.Urgency, " ", e.Status))
		}
		slices.Sort(all)
		return all
	}
	want := []string{string(alpha.Organisation()) + " dispute x1 high open", string(beta.Organisation()) + " dispute x1 high open"}
	slices.Sort(want)
	if got := inbox(); !slices.Equal(got, want) {
		t.Fatalf("the inbox has %q", got)
	}
	b.Crash()
	b.Up()
	if got := inbox(); !slices.Equal(got, want) {
		t.Fatalf("after a crash, the inbox has %q", got)
	}
	if code := s.Code(alice, "INFORM", `{"type":"resolution","data":{"escalationId":"`+string(itemOf(t, w, alpha))+`","decision":"approved"}}`); code != string(session.SchemaInvalid) {
		t.Errorf("a ruling on a dispute: %q", code)
	}
	shown := shownOf(w, s, "x1")
	s.Say(alpha, "INFORM", `{"type":"progress","data":{"commitmentId":"k1","obligation":"0"}}`) // which changes nothing of the dispute
	s.Say(alice, "INFORM", `{"type":"reply","data":{"disputeId":"x1","position":"deny","shown":"`+string(shown)+`"}}`)
	if code := s.Code(alice, "INFORM", `{"type":"reply","data":{"disputeId":"x1","position":"concede","shown":"`+string(shown)+`"}}`); code != string(session.ChainConflict) {
		t.Errorf("a reply to what has changed since: %q", code)
	}
	offer := s.Say(alice, "INFORM", `{"type":"reply","data":{"disputeId":"x1","position":"offer","remedy":"new boxes"}}`)
	s.Say(bob, "ACCEPT", fmt.Sprintf(`{"referenceId":%q}`, offer.Message))
	for i, human := range []string{" dispute x1 high deny", " dispute x1 high agreed"} {
		want[i] = string([]performatives.Agent{alpha, beta}[i].Organisation()) + human
	}
	slices.Sort(want)
	if got := inbox(); !slices.Equal(got, want) {
		t.Errorf("in the end, the inbox has %q", got)
	}
	s.Check(alpha, beta)
}

// shownOf is the view hash of a dispute.
func shownOf(w *fault.Witness, s *fault.Session, dispute string) performatives.Hash {
	var view api.SessionView
	w.Call(api.SessionGet.Name, `{"sessionId":"`+string(s.ID)+`"}`, &view)
	for _, d := range view.Disputes {
		if d.ID == dispute {
			return d.ViewHash
		}
	}
	return ""
}

// An arbiter decides what it has seen, and nothing else (COMMITMENTS.md C2).
func TestRulingsAreBoundToWhatWasShown(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	w := fault.NewWitness(t, b.URL)
	judge := performatives.Agent("human://chamber.example/judge")
	if _, err := b.Broker.Parts.Registry.Add(t.Context(), api.Card{Agent: judge}); err != nil {
		t.Fatal(err)
	}
	s := w.Arbitrated(judge, alpha, beta)
	s.Say(alpha, "OBSERVE", `{"subject":"on we go"}`)
	s.Say(beta, "COMMIT", `{"commitmentId":"k1","terms":{"obligations":[`+owesBy("0", time.Now().Add(time.Hour))+`]}}`)
	s.Say(alpha, "ACCEPT", `{"referenceId":"k1"}`)
	subject := s.Say(alpha, "INFORM", `{"type":"result","data":{"commitmentId":"k1","obligation":"0"}}`).Hash
	s.Say(beta, "INFORM", fmt.Sprintf(`{"type":"dispute","data":{"disputeId":"x1","subject":%q,"ground":"mismatch","claim":"broken","severity":4}}`, subject))
	ruling := func(shown performatives.Hash) string {
		return fmt.Sprintf(`{"type":"resolution","data":{"disputeId":"x1","decision":"upheld","reason":"they are","shown":%q}}`, shown)
	}
	first := shownOf(w, s, "x1")
	for _, changes := range []string{
		`{"type":"reply","data":{"disputeId":"x1","position":"deny"}}`,
		`{"type":"result","data":{"commitmentId":"k1","obligation":"0","evidence":[{"kind":"photo","digest":"sha256:` + strings.Repeat("0", 64) + `"}]}}`,
	} {
		shown := shownOf(w, s, "x1")
		s.Say(alpha, "INFORM", changes)
		if code := s.Code(judge, "INFORM", ruling(shown)); code != string(session.ChainConflict) {
			t.Errorf("after %s: %q, want %s", changes, code, session.ChainConflict)
		}
	}
	if now := shownOf(w, s, "x1"); now == first || now == "" {
		t.Fatalf("the view hash is %q", now)
	}
	s.Say(judge, "INFORM", ruling(shownOf(w, s, "x1")))
	s.Check(alpha, beta)
}

// itemOf is the item of an organisation in the escalation inbox.
func itemOf(t *testing.T, w *fault.Witness, a performatives.Agent) (id escalation.ID) {
	t.Helper()
	var found api.Escalations
	w.Call(api.EscalationList.Name, "{}", &found)
	for _, e := range found.Escalations {
		if e.Organisation == a.Organisation() {
			id = e.ID
		}
	}
	return id
}

// The rules may ask two people before what was delivered counts as accepted. What each of them saw is
// bound (COMMITMENTS.md C2, PROTOCOL.md §7).
func TestPeopleAcceptADelivery(t *testing.T) {
	t.Parallel()
	org := beta.Organisation()
	bob, bea := performatives.Agent("human://"+string(org)+"/bob"), performatives.Agent("human://"+string(org)+"/bea")
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{org: {Rules: []*escalation.Rule{{
		Name: "large deliveries", Asked: escalation.Asked{Approvers: []string{string(bob), string(bea)}, Quorum: 2},
		Match: escalation.Match{Reason: []string{performatives.Delivered}, Amount: &escalation.Range{Min: 1000}},
	}}}}}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Rules: rules})
	w := fault.NewWitness(t, b.URL)
	for _, human := range []performatives.Agent{bob, bea} {
		if _, err := b.Broker.Parts.Registry.Add(t.Context(), api.Card{Agent: human}); err != nil {
			t.Fatal(err)
		}
	}
	s := promises(w, func(now time.Time) []string {
		worth := func(id string, value int) string {
			return strings.TrimSuffix(owesBy(id, now.Add(time.Hour)), "}") + fmt.Sprintf(`,"amount":{"value":%d,"currency":"EUR"}}`, value)
		}
		return []string{worth("small", 999), worth("large", 1000)}
	})
	delivered := map[string]performatives.MessageID{}
	for _, id := range []string{"small", "large"} {
		delivered[id] = s.Say(alpha, "INFORM", `{"type":"result","data":{"commitmentId":"k1","obligation":"`+id+`"}}`).Message
	}
	if r := s.Say(beta, "ACCEPT", fmt.Sprintf(`{"referenceId":%q}`, delivered["small"])); r.State != session.Executing {
		t.Fatalf("a small delivery left the session %s", r.State)
	}
	if r := s.Say(beta, "ACCEPT", fmt.Sprintf(`{"referenceId":%q}`, delivered["large"])); r.State != session.Escalated {
		t.Fatalf("a large delivery left the session %s", r.State)
	}
	b.Crash()
	b.Up()
	id := itemOf(t, w, beta)
	item := func() (item api.EscalationItem) {
		t.Helper()
		w.Call(api.EscalationGet.Name, `{"escalationId":"`+string(id)+`"}`, &item)
		return item
	}
	seen := item()
	if seen.Reason != performatives.Delivered || seen.Amount == nil || seen.Amount.Value != 1000 || seen.Route.Rule != "large deliveries" || seen.ViewHash == "" {
		t.Fatalf("the item is %+v", seen)
	}
	ruling := func(decision string, shown performatives.Hash) string {
		return fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":%q,"shown":%q}}`, id, decision, shown)
	}
	s.Say(bob, "INFORM", ruling("approved", seen.ViewHash))
	if code := s.Code(bea, "INFORM", ruling("approved", seen.ViewHash)); code != string(session.ChainConflict) {
		t.Errorf("what changed since it was shown: %q", code)
	}
	if r := s.Say(bea, "INFORM", ruling("approved", item().ViewHash)); r.State != session.Executing {
		t.Errorf("two approvals left the session %s", r.State)
	}
	var view api.SessionView
	w.Call(api.SessionGet.Name, `{"sessionId":"`+string(s.ID)+`","part":"obligations"}`, &view)
	if len(view.Owed) != 2 {
		t.Errorf("%d obligations, want 2", len(view.Owed))
	}
	for _, o := range view.Owed {
		if o.Status != session.ObligationFulfilled {
			t.Errorf("%s is %s", o.ID, o.Status)
		}
	}
	s.Check(alpha, beta)
}
