package negotiator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	buyer  = performatives.Agent("agent://acme.com/buyer")
	seller = performatives.Agent("agent://widgets.co/seller")
)

func agent(w *testkit.World, a performatives.Agent, policy string) *negotiator.Agent {
	return &negotiator.Agent{Self: a, Policy: example(w, policy), Broker: w.Client(a), Worker: "n"}
}

// haggle lets agents take turns until none waits.
func haggle(w *testkit.World, agents ...*negotiator.Agent) (did []string) {
	w.Helper()
	for range 64 {
		idle := true
		for _, a := range agents {
			what, err := a.Step(w.Ctx)
			testkit.Must(w, err)
			if what != "" {
				did, idle = append(did, what), false
			}
		}
		if idle {
			return did
		}
	}
	w.Fatalf("they go on: %q", did)
	return nil
}

func invite(w *testkit.World, mode string) performatives.SessionID {
	w.Helper()
	s, err := w.Client(buyer).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller}, Purpose: "cups", Mode: mode})
	testkit.Must(w, err)
	return s.ID()
}

func view(w *testkit.World, id performatives.SessionID) api.SessionView {
	w.Helper()
	v, err := w.Client(buyer).View(w.Ctx, id)
	testkit.Must(w, err)
	return v
}

// Two negotiators agree in bilateral/1, and in asp/1 once one has made an offer.
func TestNegotiatorsAgree(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	buys, sells := agent(w, buyer, "buy.yaml"), agent(w, seller, "sell.yaml")
	for _, mode := range []string{"bilateral/1", "asp/1"} {
		id := invite(w, mode)
		if mode == "asp/1" {
			haggle(w, sells)
			terms := map[string]any{"currency": "EUR", "price": 400, "deliveryDays": 3, "finish": "matte"}
			_, err := w.Client(buyer).Session(id).Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "cups", Terms: terms})
			testkit.Must(t, err)
		}
		did := haggle(w, sells, buys)
		v := view(w, id)
		last := v.Proposals[len(v.Proposals)-1]
		if last.Status != "accepted" || len(v.Proposals) < 3 {
			t.Errorf("in %s after %q the last of %d offers is %s", mode, did, len(v.Proposals), last.Status)
		}
		var terms map[string]any
		testkit.Must(t, json.Unmarshal(last.Terms, &terms))
		for _, p := range []*negotiator.Policy{buys.Policy, sells.Policy} {
			if u, beyond := p.Utility(terms); beyond != "" || u < p.Reservation {
				t.Errorf("in %s they agree on %v", mode, terms)
			}
		}
	}
}

// A counter-offer about something else is a human's to judge, and a question about an offer of its own makes it offer nothing.
func TestNegotiatorAnother(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	sells := agent(w, seller, "sell.yaml")
	id := invite(w, "asp/1")
	haggle(w, sells)
	deal := w.Client(buyer).Session(id)
	terms := map[string]any{"currency": "EUR", "price": 410, "deliveryDays": 20, "finish": "matte"}
	_, err := deal.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "cups", Terms: terms})
	testkit.Must(t, err)
	did := haggle(w, sells)
	v := view(w, id)
	ours := v.Proposals[len(v.Proposals)-1]
	if len(did) != 1 || ours.From != seller {
		t.Fatalf("it says %q", did)
	}
	_, err = deal.Say(w.Ctx, &performatives.QueryBody{QueryID: ours.Proposal, QueryType: "x", Subject: "again?"})
	testkit.Must(t, err)
	if did, err := sells.Step(w.Ctx); !errors.Is(err, negotiator.ErrLeft) {
		t.Errorf("a question about its offer is answered %q: %v", did, err)
	}
	_, err = deal.Counter(w.Ctx, ours.Proposal, client.Proposal{ID: "p2", Subject: "plates", Terms: terms})
	testkit.Must(t, err)
	haggle(w, sells)
	v = view(w, id)
	if ours = v.Proposals[len(v.Proposals)-1]; ours.From != seller || ours.Subject != "cups" {
		t.Fatalf("a counter-offer about plates is countered with %+v", ours)
	}
	terms["price"] = 5000
	_, err = deal.Counter(w.Ctx, ours.Proposal, client.Proposal{ID: "p3", Subject: "plates", Terms: terms})
	testkit.Must(t, err)
	if did, err := sells.Step(w.Ctx); err != nil || !strings.HasPrefix(did, "ESCALATE") {
		t.Errorf("a counter-offer about plates is answered %q (%v)", did, err)
	}
}

// A commitment is a human's to judge, whose ruling is kept to.
func TestNegotiatorCommits(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string]string{"approved": "accepted", "denied": "rejected", "": "rejected"} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{})
			p, q := w.Principal(buyer), w.Principal(seller)
			human := performatives.Agent("human://acme.com/alice")
			if decision != "" {
				w.Principal(human)
			}
			id := w.Open(p, q)
			buys := agent(w, buyer, "buy.yaml")
			p.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "s", Terms: []byte(`{"price":400,"currency":"EUR"}`)})
			q.Say(id, &performatives.AcceptBody{ReferenceID: "p1"})
			q.Say(id, &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p1", Terms: &performatives.CommitmentTerms{
				Obligations: []performatives.Obligation{{Party: seller, Action: "deliver"}},
			}})
			haggle(w, buys)
			if decision != "" {
				w.Principal(human).Say(id, testkit.Ruling(performatives.MessageID(view(w, id).Escalation.ID), decision))
				haggle(w, buys)
			}
			if got := view(w, id).Commitments[0].Status; got != want {
				t.Errorf("the commitment is %s, want %s", got, want)
			}
		})
	}
}

// In convergent/1 each side accepts its own offer too, and makes no other before somebody else has spoken.
func TestNegotiatorModes(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	sells := agent(w, seller, "sell.yaml")
	id := invite(w, "convergent/1")
	haggle(w, sells)
	_, err := w.Client(buyer).Session(id).Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "cups", Terms: map[string]any{
		"currency": "EUR", "price": 410, "deliveryDays": 20, "finish": "matte",
	}})
	testkit.Must(t, err)
	if did := haggle(w, sells); len(did) != 2 || !strings.HasPrefix(did[0], "COUNTER") || !strings.HasPrefix(did[1], "ACCEPT") {
		t.Errorf("in convergent/1 it says %q", did)
	}
}

// A strict broker refuses acts.
type strict struct {
	turn    api.Turn
	refuses map[string]*session.Refusal
	said    []string
}

func (s *strict) PickUp(context.Context, api.PickUpTurn) (api.Turn, error) { return s.turn, nil }

func (s *strict) RespondTurn(_ context.Context, q api.RespondTurn) (api.Acceptance, error) {
	s.said = append(s.said, q.Performative)
	if why := s.refuses[q.Performative]; why != nil {
		return api.Acceptance{}, why
	}
	return api.Acceptance{}, nil
}

// What is refused is not said again: where the mode allows no more offers, the turn is the last one, and what a human
// has to decide, or has decided, stays so.
func TestNegotiatorRefused(t *testing.T) {
	t.Parallel()
	const cups, ours = `{"currency":"EUR","price":%d,"deliveryDays":%d,"finish":"matte"}`, "offer-1"
	refuses := map[string]*session.Refusal{
		"rounds": session.Violation("max_rounds", "no more offers"), "category": session.Violation("category", "no"),
		"above": session.Refuse(session.AuthorityExceeded, "above").With(map[string]any{"escalationId": "e1"}), "nobody": session.Refuse(session.Unauthorized, "nobody decides"),
		"card": session.Refuse(session.AuthorityExceeded, "above").With(map[string]any{"maxTransactionValue": 300}),
	}
	ruled := func(status string) func(*api.SessionView) {
		return func(v *api.SessionView) {
			v.Escalation = &api.EscalationView{Reference: "p1", OnBehalfOf: buyer, Status: status}
		}
	}
	plates := func(v *api.SessionView) {
		v.Proposals = append(v.Proposals, api.OfferView{Proposal: ours, From: buyer, Subject: "cups", Status: "countered"})
		v.Proposals[0].Supersedes, v.Proposals[0].Subject = ours, "plates"
	}
	published := func(v *api.SessionView) { v.Publish = []byte(`"terms"`) }
	for name, c := range map[string]struct {
		price   int
		refused map[string]string
		view    []func(*api.SessionView)
		want    string
	}{
		"good at the cap":                   {560, map[string]string{"COUNTER": "rounds"}, nil, "COUNTER ACCEPT"},
		"poor at the cap":                   {690, map[string]string{"COUNTER": "rounds"}, nil, "COUNTER REJECT"},
		"beyond at the cap":                 {900, map[string]string{"COUNTER": "rounds"}, nil, "COUNTER ESCALATE"},
		"plates at the cap":                 {560, map[string]string{"COUNTER": "rounds"}, []func(*api.SessionView){plates}, "COUNTER ESCALATE"},
		"denied plates":                     {560, map[string]string{"COUNTER": "rounds"}, []func(*api.SessionView){plates, ruled("denied")}, "COUNTER REJECT"},
		"published at the cap":              {560, map[string]string{"COUNTER": "rounds"}, []func(*api.SessionView){published}, "COUNTER ESCALATE"},
		"another violation":                 {560, map[string]string{"COUNTER": "category"}, nil, "COUNTER left"},
		"above the card":                    {400, map[string]string{"ACCEPT": "above"}, nil, "ACCEPT ESCALATE"},
		"above, nobody":                     {400, map[string]string{"ACCEPT": "above", "ESCALATE": "nobody"}, nil, "ACCEPT ESCALATE REJECT"},
		"above the card, which is approved": {400, map[string]string{"ACCEPT": "card"}, []func(*api.SessionView){ruled("approved")}, "ACCEPT left"},
		"above the ruling":                  {900, map[string]string{"ACCEPT": "above", "COUNTER": "rounds"}, []func(*api.SessionView){ruled("approved")}, "COUNTER ACCEPT REJECT"},
		"all offers above":                  {900, map[string]string{"COUNTER": "above"}, nil, "COUNTER REJECT"},
		"nothing is allowed":                {900, map[string]string{"COUNTER": "above", "REJECT": "nobody"}, nil, "COUNTER REJECT left"},
	} {
		days := 12
		if c.price == 400 {
			days = 3
		}
		b := &strict{refuses: map[string]*session.Refusal{}, turn: api.Turn{
			Claim: &api.TurnClaim{}, Turn: &api.TurnNumber{}, Mode: "binding/1", Reference: "p1",
			View: &api.SessionView{State: session.Conversing, Proposals: []api.OfferView{{Proposal: "p1", Status: "open", From: seller, Terms: fmt.Appendf(nil, cups, c.price, days)}}},
		}}
		for act, why := range c.refused {
			b.refuses[act] = refuses[why]
		}
		for _, change := range c.view {
			change(b.turn.View)
		}
		n := &negotiator.Agent{Self: buyer, Policy: example(t, "buy.yaml"), Broker: b}
		if _, err := n.Step(t.Context()); errors.Is(err, negotiator.ErrLeft) {
			b.said = append(b.said, "left")
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(b.said, " "); got != c.want {
			t.Errorf("%s: it says %s, want %s", name, got, c.want)
		}
	}
}

// An offer that the agent has accepted or rejected waits for others, and no turn that comes again is answered again.
func TestNegotiatorConverged(t *testing.T) {
	t.Parallel()
	again := &strict{turn: api.Turn{
		Claim: &api.TurnClaim{}, Turn: &api.TurnNumber{Number: 9, Cap: 10}, Mode: "bilateral/1", Reference: "p1",
		View: &api.SessionView{State: session.Conversing, Proposals: []api.OfferView{{Proposal: "p1", Status: "open", From: seller, Terms: []byte(`{"currency":"EUR","price":690,"deliveryDays":12,"finish":"matte"}`)}}},
	}}
	n := &negotiator.Agent{Self: buyer, Policy: example(t, "buy.yaml"), Broker: again}
	for range 3 {
		if _, err := n.Step(t.Context()); err != nil && !errors.Is(err, negotiator.ErrLeft) {
			t.Error(err)
		}
	}
	if got := strings.Join(again.said, " "); got != "REJECT" {
		t.Errorf("a turn that comes again is answered %s", got)
	}
	for _, part := range []string{`{"accepts":{"` + string(buyer) + `":"p1"}}`, `{"rejections":[{"agentId":"` + string(buyer) + `","proposalId":"p1"}]}`} {
		b := &strict{turn: api.Turn{
			Claim: &api.TurnClaim{}, Turn: &api.TurnNumber{}, Mode: "convergent/1", Reference: "p1",
			View: &api.SessionView{State: session.Conversing, Proposals: []api.OfferView{{Proposal: "p1", Status: "open", From: seller}}, ModePart: []byte(`{"projection":` + part + `}`)},
		}}
		n := &negotiator.Agent{Self: buyer, Policy: example(t, "buy.yaml"), Broker: b}
		if _, err := n.Step(t.Context()); !errors.Is(err, negotiator.ErrLeft) || len(b.said) > 0 {
			t.Errorf("it says %q (%v)", b.said, err)
		}
	}
}

// An invitation that the agent's card forbids is declined, and nobody learns why.
func TestNegotiatorDeclines(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	_, err := w.OperatorClient().AddAgent(w.Ctx, api.Card{Agent: seller})
	testkit.Must(t, err)
	sells := agent(w, seller, "sell.yaml")
	id := invite(w, "asp/1")
	_, err = w.OperatorClient().AddAgent(w.Ctx, api.Card{Agent: seller, CCC: jsontext.Value(`{"ccc_version":"1.0","scope_id":"s","embargo_list":["did:web:acme.com"]}`)})
	testkit.Must(t, err)
	did := haggle(w, sells)
	if v := view(w, id); v.State != session.Failed || len(did) != 1 || !strings.HasPrefix(did[0], "REJECT") {
		t.Errorf("after %q the session is %s", did, v.State)
	}
}

// COMMITMENTS.md C1: who accepts consents to publish what the invitation asks for, so without a mandate the
// invitation is declined, and where another face has accepted it, a human decides about the offer.
func TestNegotiatorPublishes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		mandate, elsewhere bool
		want               string
	}{{"no mandate", false, false, "REJECT"}, {"mandate", true, false, "ACCEPT, ACCEPT"}, {"accepted elsewhere", false, true, "ESCALATE"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{Dev: true})
			sells := agent(w, seller, "sell.yaml")
			sells.Policy.Publish = c.mandate
			p, id := w.Principal(buyer), testkit.NewSession()
			p.Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"publish":"terms"}}`, seller)})
			if c.elsewhere {
				w.Principal(seller).Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
			}
			did := haggle(w, sells)
			if v := view(w, id); v.State == session.Introduced {
				p.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "s", Terms: []byte(`{"price":800,"currency":"EUR","deliveryDays":30,"finish":"glossy"}`)})
				did = append(did, haggle(w, sells)...)
			}
			if got := strings.ReplaceAll(strings.Join(did, ", "), " in "+string(id), ""); got != c.want {
				t.Errorf("it did %q, want %q", got, c.want)
			}
		})
	}
}

// An offer that the policy does not know goes to a human, whose ruling is kept to; where
// nobody may decide, it is rejected. A question is answered.
func TestNegotiatorEscalates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, decision, want string
		human                bool
	}{
		{"approved", `"decision":"approved"`, "accepted", true}, {"denied", `"decision":"denied"`, "countered", true}, {"nobody", "", "rejected", false},
		{"approved up to less", `"decision":"approved","authority":{"maxAmount":300,"currency":"EUR","termPath":"terms.price"}`, "rejected", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{})
			p, q := w.Principal(buyer), w.Principal(seller)
			human := performatives.Agent("human://acme.com/alice")
			if c.human {
				w.Principal(human)
			}
			id := w.Open(p, q)
			buys := agent(w, buyer, "buy.yaml")
			p.Say(id, &performatives.ProposeBody{ProposalID: "own", Type: "x", Subject: "s", Terms: []byte(`{"price":400,"currency":"EUR"}`)})
			q.Say(id, &performatives.ClarifyBody{ReferenceID: "own", Questions: []performatives.Question{{Field: "terms.price", Question: "net?"}}})
			haggle(w, buys)
			if fields := view(w, id).Proposals[0].Pending; len(fields) > 0 {
				t.Errorf("the question about %v is open", fields)
			}
			q.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "s", Terms: []byte(`{"price":400,"currency":"EUR","deliveryDays":3,"finish":"matte","penalties":"10%"}`)})
			haggle(w, buys)
			if c.human {
				e := view(w, id).Escalation
				if e == nil || e.Status != "open" || e.Reference != "p1" || e.Reason != "policy-ambiguous" {
					t.Fatalf("the escalation is %+v", e)
				}
				ruling := fmt.Appendf(nil, `{"escalationId":%q,%s}`, e.ID, c.decision)
				w.Principal(human).Say(id, &performatives.InformBody{Type: performatives.Resolution, Data: ruling})
				if said := haggle(w, buys); len(said) != 1 {
					t.Errorf("after the ruling it says %q", said)
				}
			}
			if got := view(w, id).Proposals[1].Status; got != c.want {
				t.Errorf("the offer is %s, want %s", got, c.want)
			}
		})
	}
}

// A standby takes the turns that its principal leaves waiting.
func TestNegotiatorStandsBy(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	standby := w.Principal("agent://acme.com/negotiator", func(c *api.Card) { c.Kind = performatives.KindSystem })
	p, q := w.Principal(buyer, func(c *api.Card) { c.Standby = standby.Agent }), w.Principal(seller)
	id := testkit.NewSession()
	p.Say(id, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"parkedMs":1}}`, seller),
	})
	q.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	q.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "s", Terms: []byte(`{"price":400,"currency":"EUR","deliveryDays":3,"finish":"matte"}`)})
	standby.Read(1)
	haggle(w, agent(w, standby.Agent, "buy.yaml"))
	if got := view(w, id).Proposals[0].Status; got != "accepted" {
		t.Errorf("the offer is %s", got)
	}
}

// A model proposes within the policy. One that is late, wrong, or does what the other side's
// terms tell it spends no turn.
func TestModel(t *testing.T) {
	t.Parallel()
	fair := `{"terms":{"price":410,"currency":"EUR","deliveryDays":3,"finish":"matte"}}`
	for name, c := range map[string]struct {
		answer string
		status int
		takes  bool
	}{
		"well":      {fair, 200, true},
		"late":      {"late", 200, false},
		"error":     {fair, 500, false},
		"nonsense":  {"I would rather not.", 200, false},
		"no terms":  {"{}", 200, false},
		"too cheap": {`{"terms":{"price":700,"currency":"EUR","deliveryDays":21,"finish":"glossy"}}`, 200, false},
		"injected":  {`{"terms":{"price":400,"currency":"EUR","deliveryDays":3,"finish":"matte","penalties":"pay 1000000"}}`, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer key" {
					t.Errorf("the model is asked at %s", r.URL)
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				if c.answer == "late" {
					<-r.Context().Done()
					return
				}
				rw.WriteHeader(c.status)
				answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": c.answer}}}})
				if err == nil {
					rw.Write(answer) //nolint:errcheck // of a test
				}
			}))
			t.Cleanup(endpoint.Close)
			w := testkit.NewWorld(t, testkit.Options{Dev: true})
			id := invite(w, "bilateral/1")
			buys, sells := agent(w, buyer, "buy.yaml"), agent(w, seller, "sell.yaml")
			haggle(w, sells) // it accepts the invitation
			within := testkit.Patience
			if c.answer == "late" {
				within = 500 * time.Millisecond
			}
			buys.Model = negotiator.NewModel(endpoint.URL+"/v1", "m", "key", within)
			did, err := buys.Step(w.Ctx)
			if c.takes != (did != "") || c.takes == errors.Is(err, negotiator.ErrLeft) {
				t.Errorf("the step says %q, %v", did, err)
			}
			v := view(w, id)
			if n := len(v.Proposals); (n == 1) != c.takes || v.State == session.Conversing != c.takes {
				t.Errorf("there are %d offers while %s", n, v.State)
			}
			if c.takes && string(v.Proposals[0].Terms) != `{"currency":"EUR","deliveryDays":3,"finish":"matte","price":410}` {
				t.Errorf("the offer is %s", v.Proposals[0].Terms)
			}
		})
	}
}
