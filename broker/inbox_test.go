package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testbroker"
)

const (
	chief = performatives.Agent("human://acme.com/chief")
	bob   = performatives.Agent("human://widgets.co/bob")
)

// An office is two agents, the humans behind them, and a broker with rules.
type office struct {
	*testing.T
	b       *testbroker.Broker
	signers map[performatives.Agent]performatives.Signer
	id      performatives.SessionID
}

func newOffice(t *testing.T, rules *escalation.Rules, limits map[performatives.Agent]performatives.Limit) *office {
	t.Helper()
	if rules != nil {
		if err := rules.Check(); err != nil {
			t.Fatal(err)
		}
	}
	o := &office{T: t, b: testbroker.Start(t, testbroker.Options{Sync: time.Minute, Rules: rules}), signers: map[performatives.Agent]performatives.Signer{}}
	for _, a := range []performatives.Agent{alpha, beta, alice, anna, chief, bob} {
		o.signers[a] = signer(t, o.b.Register(a, func(c *api.Card) {
			if l, some := limits[a]; some {
				c.Registry.Limits = []performatives.Limit{l}
			}
		}))
	}
	return o
}

// says submits an act and returns its refusal's code.
func (o *office) says(a performatives.Agent, body performatives.Body) (api.Acceptance, error) {
	o.Helper()
	return o.b.SubmitAs(o.Context(), a, o.id, signedEnvelope(o.T, o.id, a, o.signers[a], body))
}

func (o *office) heard(a performatives.Agent, body performatives.Body) api.Acceptance {
	o.Helper()
	accepted, err := o.says(a, body)
	if err != nil {
		o.Fatalf("%s of %s: %v", body.Act(), a, err)
	}
	return accepted
}

// asks opens a session in which alpha escalates beta's price.
func (o *office) asks(price string) escalation.ID {
	o.Helper()
	o.id = performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	o.heard(alpha, &performatives.ProposeBody{
		ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: jsontext.Value(`{"participants":["` + string(beta) + `"]}`),
	})
	o.heard(beta, &performatives.AcceptBody{ReferenceID: "i1"})
	o.heard(beta, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "a plan", Terms: jsontext.Value(`{"price":` + price + `,"currency":"USD"}`)})
	return escalation.ID(o.heard(alpha, &performatives.EscalateBody{
		Reason: "authority-limit", Urgency: "high", Context: jsontext.Value(`"over my limit"`), ReferenceID: "p1",
	}).Message)
}

// calls asks a verb and reads the answer into an A.
func calls[A any](o *office, a performatives.Agent, verb string, request any) (answer A, err error) {
	o.Helper()
	data, err := json.Marshal(request)
	if err != nil {
		o.Fatal(err)
	}
	reply, err := o.b.CallAs(o.Context(), a, verb, data)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		o.Fatal(err)
	}
	return answer, nil
}

func (o *office) item(a performatives.Agent, id escalation.ID) api.EscalationItem {
	o.Helper()
	item, err := calls[api.EscalationItem](o, a, api.EscalationGet.Name, api.EscalationRef{Escalation: string(id)})
	if err != nil {
		o.Fatal(err)
	}
	return item
}

func (o *office) does(a performatives.Agent, verb string, request any) api.EscalationItem {
	o.Helper()
	item, err := calls[api.EscalationItem](o, a, verb, request)
	if err != nil {
		o.Fatalf("%s of %s: %v", verb, a, err)
	}
	return item
}

func (o *office) refused(want session.Code, a performatives.Agent, verb string, request any) {
	o.Helper()
	if _, err := calls[api.EscalationItem](o, a, verb, request); code(err) != want {
		o.Errorf("%s of %s: %v, want %s", verb, a, err, want)
	}
}

// rules decides; change edits the ruling.
func (o *office) rules(a performatives.Agent, id escalation.ID, decision string, change ...func(*performatives.RulingData)) (api.Acceptance, error) {
	o.Helper()
	data := performatives.RulingData{EscalationID: string(id), Decision: decision}
	for _, c := range change {
		c(&data)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		o.Fatal(err)
	}
	return o.says(a, &performatives.InformBody{Type: performatives.Resolution, Data: raw})
}

func asShown(item api.EscalationItem) func(*performatives.RulingData) {
	return func(d *performatives.RulingData) { d.Revision, d.Shown = &item.Revision, item.Shown }
}

func kindsOf(events []escalation.Event) (kinds []escalation.Kind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (o *office) history(id escalation.ID) []escalation.Event {
	o.Helper()
	h, err := calls[api.EscalationEvents](o, alice, api.EscalationHistory.Name, api.EscalationRef{Escalation: string(id)})
	if err != nil {
		o.Fatal(err)
	}
	return h.Events
}

// until follows the inbox as a human until an item is as wanted.
func (o *office) until(a performatives.Agent, id escalation.ID, wanted func(api.EscalationItem) bool) api.EscalationItem {
	o.Helper()
	cursor := ""
	for range 100 {
		seen, err := calls[api.Watched](o, a, api.EscalationWatch.Name, api.WatchEscalations{Since: cursor, Wait: 10_000})
		if err != nil {
			o.Fatal(err)
		}
		cursor = seen.Cursor
		if item := o.item(a, id); wanted(item) {
			return item
		}
	}
	o.Fatal("it never came to that")
	return api.EscalationItem{}
}

// What people do around an item is seen by colleagues at once, is in nobody
// else's sight, and holds a decision up where it has to.
func TestDeskVerbs(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	e := o.asks("15000")
	ref := api.EscalationRef{Escalation: string(e)}

	first := o.item(alice, e)
	if first.You == nil || !first.You.Decide || first.Amount == nil || first.Amount.Value != 15000 || first.Due == "" || first.Shown == "" ||
		len(first.Approvers) != 3 || first.IfUnanswered == nil || len(first.Changes) != 2 {
		t.Errorf("%+v", first)
	}
	claimed := o.does(alice, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	if claimed.Desk.Claim == nil || claimed.Desk.Claim.By != alice || claimed.Shown != first.Shown {
		t.Errorf("%+v", claimed.Desk)
	}
	o.refused(session.WrongTurn, anna, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	o.refused(session.WrongTurn, anna, api.EscalationRelease.Name, ref)
	if you := o.item(anna, e).You; you.Decide || you.Why == "" {
		t.Errorf("anna may decide what alice has claimed: %+v", you)
	}
	if _, err := o.rules(anna, e, performatives.Denied); code(err) != session.WrongTurn {
		t.Errorf("anna decides what alice has claimed: %v", err)
	}
	for by, want := range map[string]int{api.ClaimedByMe: 1, api.ClaimedByNobody: 0, api.ClaimedByOthers: 0, "": 1} {
		list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, api.ListEscalations{Claimed: by})
		if err != nil || len(list.Escalations) != want || list.Counts.Open != 1 || list.Counts.Mine != 1 || list.Counts.Urgency["high"] != 1 {
			t.Errorf("claimed by %q: %+v %v", by, list, err)
		}
	}
	o.does(alice, api.EscalationRelease.Name, ref)
	o.does(anna, api.EscalationAssign.Name, api.AssignEscalation{Escalation: string(e), To: chief})
	o.refused(session.Unauthorized, anna, api.EscalationAssign.Name, api.AssignEscalation{Escalation: string(e), To: bob})
	o.refused(session.MalformedEnvelope, anna, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "  "})
	commented := o.does(anna, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "we have a better offer"})
	if commented.Desk.Assignee != chief || commented.Desk.Comments != 1 || commented.Revision != first.Revision+1 {
		t.Errorf("%+v", commented)
	}
	if item := o.item(chief, e); len(item.Comments) != 1 || item.Comments[0].Text != "we have a better offer" {
		t.Errorf("the chief reads %+v", item.Comments)
	}
	handed := o.does(chief, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), To: alice, Reason: "yours"})
	if handed.Desk.Assignee != alice {
		t.Errorf("%+v", handed.Desk)
	}

	// Nobody else is told of any of it.
	for _, a := range []performatives.Agent{alpha, beta} {
		item := o.item(a, e)
		if item.Desk != (api.Desk{}) || item.Route != nil || item.Comments != nil || item.Approvers != nil || item.You != nil || item.Shown != "" {
			t.Errorf("%s sees %+v", a, item)
		}
		o.refused(session.UnknownSession, a, api.EscalationHistory.Name, ref)
		o.refused(session.Unauthorized, a, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "hello"})
	}
	o.refused(session.UnknownSession, bob, api.EscalationGet.Name, ref)
	o.refused(session.UnknownSession, bob, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})

	// A decision on what was shown before the comment is none.
	_, err := o.rules(alice, e, performatives.Approved, asShown(first))
	if code(err) != session.ChainConflict {
		t.Errorf("a stale decision: %v", err)
	}
	var now struct {
		Escalation api.EscalationItem `json:"escalation"`
	}
	if details(t, err, &now); now.Escalation.Revision != handed.Revision || now.Escalation.Desk.Comments != 1 {
		t.Errorf("it is refused with %+v", now.Escalation)
	}
	accepted, err := o.rules(alice, e, performatives.Approved, asShown(handed))
	if err != nil || accepted.State != session.Conversing {
		t.Fatal(accepted, err)
	}
	if again, err := o.rules(alice, e, performatives.Approved, asShown(first)); err != nil || !again.Duplicate || again.Sequence != accepted.Sequence {
		t.Errorf("the same decision from another tab: %+v %v", again, err)
	}
	if _, err := o.rules(anna, e, performatives.Approved); code(err) != session.EscalationResolved {
		t.Errorf("a late one: %v", err)
	}
	o.refused(session.EscalationResolved, anna, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	want := []escalation.Kind{
		escalation.Opened, escalation.Viewed, escalation.Claimed, escalation.Viewed, escalation.Released, escalation.Assigned,
		escalation.Commented, escalation.Viewed, escalation.Transferred, escalation.Voted, escalation.Decided,
	}
	o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == performatives.Approved })
	if got := kindsOf(o.history(e)); !slices.Equal(got, want) {
		t.Errorf("the history is\n%v, want\n%v", got, want)
	}
}

func details(t *testing.T, err error, into any) {
	t.Helper()
	r, ok := err.(*session.Refusal) //nolint:errorlint // Submit returns it as it is
	if !ok {
		t.Fatal(err)
	}
	raw, ok := r.Details.(jsontext.Value)
	if !ok {
		t.Fatalf("%T", r.Details)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func within(d time.Duration) escalation.Times {
	return escalation.Times{All: escalation.Duration(d)}
}

// chain asks alice, and then the chief.
func chain(first, second, remind time.Duration) *escalation.Rules {
	before := escalation.Duration(remind)
	return &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Remind: &before,
		Rules: []*escalation.Rule{{
			Name:  "all",
			Asked: escalation.Asked{Level: "buyers", Approvers: []string{string(alice)}, Due: within(first)},
			Chain: []escalation.Asked{{Level: "board", Approvers: []string{string(chief)}, Due: within(second)}},
		}},
	}}}
}

// A level that does not answer is reminded, then the next one is asked, by the
// durable timer; at the end of the chain the session fails closed.
func TestChain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, chain(3*time.Second, 5*time.Second, 1500*time.Millisecond), nil)
	e := o.asks("15000")
	if _, err := o.rules(chief, e, performatives.Approved); code(err) != session.AuthorityExceeded {
		t.Errorf("before its turn: %v", err)
	}
	if _, err := o.rules(anna, e, performatives.Approved); code(err) != session.Unauthorized {
		t.Errorf("who is not asked: %v", err)
	}
	up := o.until(chief, e, func(i api.EscalationItem) bool { return i.Route.Level == 1 && i.Desk.Events > 2 })
	if up.Route.Rule != "all" || up.Route.Levels[1].Name != "board" || !up.You.Decide {
		t.Errorf("%+v %+v", up.Route, up.You)
	}
	over := o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == escalation.EndExpired })
	if over.You.Decide {
		t.Errorf("%+v", over.You)
	}
	got := slices.DeleteFunc(kindsOf(o.history(e)), func(k escalation.Kind) bool { return k == escalation.Viewed })
	if want := []escalation.Kind{escalation.Opened, escalation.Reminded, escalation.Reescalated, escalation.Reminded, escalation.Ended}; !slices.Equal(got, want) {
		t.Errorf("the history is %v, want %v", got, want)
	}
	view, err := calls[api.SessionView](o, beta, api.SessionGet.Name, api.SessionRef{Session: o.id})
	if err != nil || view.State != session.Failed || view.Closing != session.EscalationExpired {
		t.Errorf("%+v %v", view, err)
	}

}

// Transferred up the chain, it is the board's at once.
func TestTransferUpTheChain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, chain(time.Hour, 2*time.Hour, time.Minute), nil)
	e := o.asks("15000")
	o.refused(session.AuthorityExceeded, chief, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), Level: "board"})
	moved := o.does(alice, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), Level: "board", Reason: "above me"})
	if moved.Route.Level != 1 {
		t.Errorf("%+v", moved.Route)
	}
	if accepted, err := o.rules(chief, e, performatives.Denied, asShown(o.item(chief, e))); err != nil || accepted.State != session.Conversing {
		t.Errorf("%+v %v", accepted, err)
	}
}

// Two of three approve within their ceilings, and what they allow is enforced.
func TestQuorumAndCeilings(t *testing.T) {
	t.Parallel()
	usd := func(n float64) performatives.Limit { return performatives.Limit{Currency: "USD", MaxAmount: n} }
	o := newOffice(t, &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Rules: []*escalation.Rule{{Match: escalation.Match{Amount: &escalation.Range{Min: 10000}}, Asked: escalation.Asked{Quorum: 2}}},
	}}}, map[performatives.Agent]performatives.Limit{alice: usd(15000), anna: usd(9000)})
	e := o.asks("15000")
	if item := o.item(alice, e); item.Route.Levels[0].Quorum != 2 || slices.ContainsFunc(item.Approvers, func(a api.Approver) bool { return a.Enough != (a.Agent != anna) }) {
		t.Errorf("%+v %+v", item.Route, item.Approvers)
	}
	if _, err := o.rules(anna, e, performatives.Approved); code(err) != session.AuthorityExceeded {
		t.Errorf("above anna's ceiling: %v", err)
	}
	if accepted, err := o.rules(alice, e, performatives.Approved); err != nil || accepted.State != session.Escalated {
		t.Errorf("the first: %+v %v", accepted, err)
	}
	if item := o.item(chief, e); item.Route.Levels[0].Approved != 1 || item.Revision != 1 {
		t.Errorf("%+v", item)
	}
	if accepted, err := o.rules(chief, e, performatives.Approved, asShown(o.item(chief, e))); err != nil || accepted.State != session.Conversing {
		t.Fatalf("the second: %+v %v", accepted, err)
	}
	o.heard(alpha, &performatives.AcceptBody{ReferenceID: "p1"})
	if _, err := o.says(alpha, &performatives.CommitBody{
		CommitmentID: "k1", ReferenceID: "p1", Escrow: &performatives.Escrow{Amount: 20000, Currency: "USD"},
		Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}}},
	}); code(err) != session.AuthorityExceeded {
		t.Errorf("above the ruling: %v", err)
	}
	if e := o.asks("9999"); len(o.item(anna, e).Route.Levels[0].Approvers) != 0 || o.item(anna, e).Route.Levels[0].Quorum != 1 {
		t.Errorf("what no rule matches: %+v", o.item(anna, e).Route)
	}
}

// The broker is gone right after a decision was entered: it is decided, the
// session goes on, and the inbox says so when a broker is back.
func TestGoneAfterDecision(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"after the append", "after the answer"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, nil, nil)
			e := o.asks("15000")
			o.until(alice, e, func(i api.EscalationItem) bool { return i.Desk.Events > 0 })
			stopped := o.b.StopAt(point)
			decision := signedEnvelope(t, o.id, alice, o.signers[alice], &performatives.InformBody{
				Type: performatives.Resolution, Data: jsontext.Value(`{"escalationId":"` + string(e) + `","decision":"approved"}`),
			})
			go o.b.SubmitAs(t.Context(), alice, o.id, decision) //nolint:errcheck // nobody may answer
			<-stopped
			o.b.Crash()
			o.b.Up()
			item := o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == performatives.Approved && i.Desk.Events == 3 })
			if item.DecidedBy != alice {
				t.Errorf("%+v", item)
			}
			if accepted := o.heard(alpha, &performatives.AcceptBody{ReferenceID: "p1"}); accepted.State != session.Conversing {
				t.Errorf("%+v", accepted)
			}
		})
	}
}
