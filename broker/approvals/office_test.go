package approvals_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	alice = performatives.Agent("human://acme.com/alice")
	anna  = performatives.Agent("human://acme.com/anna")
	chief = performatives.Agent("human://acme.com/chief")
	bob   = performatives.Agent("human://widgets.co/bob")
)

// An office is two agents, the humans behind them, and a broker with rules.
type office struct {
	*testing.T
	b       *testkit.Broker
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
	o := &office{T: t, b: testkit.StartBroker(t, testkit.Options{Sync: time.Minute, Rules: rules}), signers: map[performatives.Agent]performatives.Signer{}}
	for _, a := range []performatives.Agent{alpha, beta, alice, anna, chief, bob} {
		o.signers[a] = testkit.Signer(t, o.b.Register(a, func(c *api.Card) {
			if l, some := limits[a]; some {
				c.Registry.Limits = []performatives.Limit{l}
			}
		}))
	}
	return o
}

func (o *office) envelope(a performatives.Agent, body performatives.Body) []byte {
	o.Helper()
	data, err := performatives.Draft{ID: testkit.NewID(), Session: o.id, Timestamp: time.Now(), Sender: a, Body: body}.Envelope(o.signers[a])
	testkit.Must(o, err)
	return data
}

// says submits an act.
func (o *office) says(a performatives.Agent, body performatives.Body) (api.Acceptance, error) {
	o.Helper()
	data := o.envelope(a, body)
	var accepted api.Acceptance
	var err error
	testkit.Must(o, testkit.Available(o.Context(), testkit.Repeats, func() bool {
		accepted, err = o.b.Broker.Gateway.SubmitAs(o.Context(), a, o.id, data)
		return testkit.CodeOf(err) != session.Unavailable
	}))
	return accepted, err
}

func (o *office) accepted(a performatives.Agent, body performatives.Body) api.Acceptance {
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
	o.id = testkit.NewSession()
	o.accepted(alpha, &performatives.ProposeBody{
		ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: jsontext.Value(`{"participants":["` + string(beta) + `"]}`),
	})
	o.accepted(beta, &performatives.AcceptBody{ReferenceID: "i1"})
	o.accepted(beta, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "a plan", Terms: jsontext.Value(`{"price":` + price + `,"currency":"USD"}`)})
	return escalation.ID(o.accepted(alpha, &performatives.EscalateBody{
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
	var reply []byte
	testkit.Must(o, testkit.Available(o.Context(), testkit.Repeats, func() bool {
		reply, err = o.b.Broker.Gateway.CallAs(o.Context(), a, verb, data)
		return testkit.CodeOf(err) != session.Unavailable
	}))
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
	if _, err := calls[api.EscalationItem](o, a, verb, request); testkit.CodeOf(err) != want {
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

// asSeen repeats what the human saw.
func asSeen(item api.EscalationItem) func(*performatives.RulingData) {
	return func(d *performatives.RulingData) { d.Revision, d.ViewHash = &item.Revision, item.ViewHash }
}

func kindsOf(events []escalation.Action) (kinds []escalation.Kind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (o *office) history(id escalation.ID) []escalation.Action {
	o.Helper()
	h, err := calls[api.CaseLog](o, alice, api.EscalationHistory.Name, api.EscalationRef{Escalation: string(id)})
	if err != nil {
		o.Fatal(err)
	}
	return h.Actions
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
