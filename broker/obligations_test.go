package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// carries opens a session of two sides that carries out obligations of the second.
func carries(w *testkit.World, a, b *testkit.Principal, all ...performatives.Obligation) performatives.SessionID {
	w.Helper()
	id := w.Open(a, b)
	for i := range all {
		all[i].Party, all[i].Action = b.Agent, "deliver "+all[i].ID
	}
	a.Say(id, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{Obligations: all}})
	b.Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
	return id
}

// lists calls obligation.list, as an operator if there is no name.
func lists(p *testkit.Principal, request string) *nats.Msg {
	p.Helper()
	if p.Agent == "" {
		return p.Request(api.OperatorCall(api.ObligationList.Name), []byte(request))
	}
	return p.Call(api.ObligationList.Name, request)
}

// obligations are what a principal lists, page by page.
func obligations(p *testkit.Principal, q api.ListObligations) (rows []api.ObligationRow, names string) {
	p.Helper()
	for range 50 {
		data, err := json.Marshal(q)
		testkit.Must(p, err)
		var page api.Obligations
		testkit.Must(p, json.Unmarshal(lists(p, string(data)).Data, &page))
		if n := len(page.Obligations); page.Obligations == nil || q.Limit > 0 && n > q.Limit {
			p.Errorf("a page has %d rows", n)
		}
		rows = append(rows, page.Obligations...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	for _, row := range rows {
		names += " " + row.ID
	}
	return rows, strings.TrimSpace(names)
}

// obligation.list has what is open in all of the caller's sessions, the first due first, and reads none of them.
func TestObligationList(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	a, b, c := w.Principal(alpha), w.Principal(beta), w.Principal(gamma)
	begun := time.Now().UTC().Truncate(time.Millisecond)
	in := func(d time.Duration) *time.Time { at := begun.Add(d); return &at }
	much := 4.0
	deal := carries(w, a, b, performatives.Obligation{ID: "week", Deadline: in(7 * 24 * time.Hour)}, performatives.Obligation{ID: "undated"}, performatives.Obligation{ID: "hour", Deadline: in(time.Hour), Quantity: &much, Unit: "boxes"})
	other := carries(w, b, a, performatives.Obligation{ID: "day", Deadline: in(24 * time.Hour)}, performatives.Obligation{ID: "waived", Deadline: in(24 * time.Hour)})
	carries(w, a, c, performatives.Obligation{ID: "gammas", Deadline: in(2 * time.Hour)})
	b.Say(other, &performatives.InformBody{Type: performatives.Waiver, Data: []byte(`{"commitmentId":"k1","obligation":"waived","reason":"done"}`)})
	b.Say(deal, &performatives.InformBody{Type: performatives.Result, Data: []byte(`{"commitmentId":"k1","obligation":"week","evidence":[{"kind":"note","digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`)})

	for _, x := range []struct {
		of   *testkit.Principal
		q    api.ListObligations
		want string
	}{
		{a, api.ListObligations{}, "hour gammas day week undated"},
		{a, api.ListObligations{Limit: 2}, "hour gammas day week undated"},
		{a, api.ListObligations{Awaiting: api.AwaitingMe}, "day week"},
		{b, api.ListObligations{Awaiting: api.AwaitingMe}, "hour undated"},
		{b, api.ListObligations{Awaiting: api.AwaitingOthers, Limit: 1}, "day week"},
		{a, api.ListObligations{Status: session.ObligationAsserted}, "week"},
		{a, api.ListObligations{Before: api.Timestamp(*in(24 * time.Hour))}, "hour gammas"},
		{a, api.ListObligations{After: api.Timestamp(*in(24 * time.Hour))}, "day week"},
		{c, api.ListObligations{}, "gammas"},
		{w.Operates(), api.ListObligations{Status: session.ObligationDue}, "hour gammas day undated"},
	} {
		if _, got := obligations(x.of, x.q); got != x.want {
			t.Errorf("%s lists %q for %+v, want %q", x.of.Agent, got, x.q, x.want)
		}
	}
	rows, _ := obligations(a, api.ListObligations{})
	if first := rows[0]; first.Session != deal || first.Due != api.Timestamp(*in(time.Hour)) || *first.Remains != 4 || !slices.Equal(first.For, []performatives.Agent{beta}) {
		t.Errorf("the first row is %+v", first)
	}
	if week := rows[3]; week.Delivery == nil || week.Due != week.Delivery.Until || len(week.Delivery.Evidence) > 0 || !slices.Equal(week.For, []performatives.Agent{alpha}) {
		t.Errorf("what was delivered is %+v", week)
	}
	for _, q := range []string{`{"status":"fulfilled"}`, `{"awaiting":"nobody"}`, `{"before":"soon"}`, `{"party":"mine"}`} {
		testkit.Refused(t, lists(a, q), session.MalformedEnvelope)
	}
	testkit.Refused(t, lists(w.Operates(), `{"awaiting":"me"}`), session.MalformedEnvelope)

	for how, restart := range map[string]func(){"it was closed": w.Down, "it was killed": w.Crash} {
		restart()
		w.Up()
		cached := w.Broker.Broker.Command.Counts().Cached
		again, _ := obligations(a, api.ListObligations{})
		if diff := cmp.Diff(rows, again); diff != "" {
			t.Errorf("after %s (-before +after)\n%s", how, diff)
		}
		if now := w.Broker.Broker.Command.Counts().Cached; now > cached {
			t.Errorf("the list has read %d sessions after %s", now-cached, how)
		}
	}
	a.Say(deal, &performatives.AcceptBody{ReferenceID: rows[3].Delivery.Reference})
	if _, got := obligations(a, api.ListObligations{}); got != "hour gammas day undated" {
		t.Errorf("once the delivery is accepted, %s are open", got)
	}
}

// Of a session obligation.list has those due first, and a delegate lists them while it may read the session.
func TestObligationListIsBoundedAndReadable(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	a, b, d := w.Principal(alpha), w.Principal(beta), w.Principal("agent://acme.com/delta")
	many := make([]performatives.Obligation, api.MostOpenObligations+10)
	for i := range many {
		at := time.Now().Add(time.Duration(len(many)-i) * time.Hour).UTC()
		many[i] = performatives.Obligation{ID: fmt.Sprintf("o%d", i), Deadline: &at}
	}
	id := carries(w, a, b, many...)
	rows, _ := obligations(a, api.ListObligations{Limit: 20})
	if len(rows) != api.MostOpenObligations || rows[0].ID != many[len(many)-1].ID || rows[len(rows)-1].ID != "o10" {
		t.Errorf("it lists %d obligations, from %s to %s", len(rows), rows[0].ID, rows[len(rows)-1].ID)
	}
	shows := func(when string, want int) {
		t.Helper()
		if rows, _ := obligations(d, api.ListObligations{Limit: 200}); len(rows) != want {
			t.Errorf("%s the delegate lists %d obligations, want %d", when, len(rows), want)
		}
	}
	shows("before it is asked", 0)
	grant := a.Say(id, &performatives.DelegateBody{TargetAgent: d.Agent, Scope: "law", Authority: "advisory"})
	shows("once it is asked", 0)
	d.Say(id, &performatives.AcceptBody{ReferenceID: string(grant.Message)})
	shows("once it has joined", api.MostOpenObligations)
	a.Say(id, &performatives.WithdrawBody{ReferenceID: string(grant.Message)})
	shows("once that has ended", 0)
}

// However many obligations there are, a request has few of them in memory, and the pages have all of them, once each
// and in order.
func TestManyObligationsAreListed(t *testing.T) {
	t.Parallel()
	const sessions = 45 // more than two times what a request has in memory
	w := testkit.NewWorld(t, testkit.Options{Sync: time.Minute, Limits: limits.Limits{Rate: 1e6, Burst: -1, Sessions: -1}})
	a, b := w.Principal(alpha), w.Principal(beta)
	begun := time.Now().UTC()
	for s := range sessions {
		owed := make([]performatives.Obligation, api.MostOpenObligations)
		for i := range owed {
			at := begun.Add(time.Hour + time.Duration(i*sessions+s)*time.Second)
			owed[i] = performatives.Obligation{ID: fmt.Sprintf("o%d", i), Deadline: &at}
		}
		carries(w, a, b, owed...)
	}
	rows, _ := obligations(a, api.ListObligations{Limit: api.MaxObligations})
	inOrder := slices.IsSortedFunc(rows, func(one, next api.ObligationRow) int { return strings.Compare(one.Due, next.Due) })
	if len(rows) != sessions*api.MostOpenObligations || !inOrder {
		t.Errorf("it lists %d obligations, in order: %t", len(rows), inOrder)
	}
}

// dispute.list has the disputes of the caller's sessions, to parties and the arbiter, and reads none of them.
func TestDisputeList(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	const judge = performatives.Agent("agent://chamber.org/judge")
	a, b, c, j := w.Principal(alpha), w.Principal(beta), w.Principal(gamma), w.Principal(judge)
	lists := func(p *testkit.Principal, q api.ListDisputes) (rows []api.DisputeRow, names string) {
		t.Helper()
		for range 50 {
			data, err := json.Marshal(q)
			testkit.Must(t, err)
			var page api.Disputes
			testkit.Must(t, json.Unmarshal(p.Call(api.DisputeList.Name, string(data)).Data, &page))
			if n := len(page.Disputes); page.Disputes == nil || q.Limit > 0 && n > q.Limit {
				t.Errorf("a page has %d rows", n)
			}
			rows = append(rows, page.Disputes...)
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		for _, row := range rows {
			names += " " + row.ID
		}
		return rows, strings.TrimSpace(names)
	}
	deals := func() performatives.SessionID {
		id := testkit.NewSession()
		a.Say(id, &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a deal",
			Terms: []byte(`{"participants":["` + string(beta) + `"],"policy":{"arbiter":"` + string(judge) + `"}}`),
		})
		b.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
		b.Say(id, testkit.Fact("on we go"))
		a.Say(id, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{
			Obligations: []performatives.Obligation{{ID: "0", Party: beta, Action: "deliver", VerificationMethod: "a look"}},
		}})
		b.Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
		return id
	}
	informs := func(p *testkit.Principal, id performatives.SessionID, kind string, data any) {
		t.Helper()
		raw, err := json.Marshal(data)
		testkit.Must(t, err)
		p.Say(id, &performatives.InformBody{Type: kind, Data: raw})
	}
	disputes := func(id performatives.SessionID, name string) {
		t.Helper()
		about := b.Say(id, testkit.Fact("delivered"))
		informs(a, id, performatives.Dispute, performatives.DisputeData{DisputeID: name, Subject: about.Hash, Ground: "other", Claim: strings.Repeat("?", 300), Severity: 1})
	}
	first, second := deals(), deals()
	for _, name := range []string{"d1", "d2", "d3"} {
		disputes(first, name)
	}
	disputes(second, "e1")
	informs(b, first, performatives.Reply, performatives.ReplyData{DisputeID: "d1", Position: performatives.Deny})
	informs(j, first, performatives.Resolution, performatives.DecisionData{DisputeID: "d2", Decision: performatives.Dismissed, Reason: "nothing shows it"})

	for _, x := range []struct {
		of   *testkit.Principal
		q    api.ListDisputes
		want string
	}{
		{a, api.ListDisputes{}, "e1 d3 d1"}, {b, api.ListDisputes{Limit: 1}, "e1 d3 d1"}, {j, api.ListDisputes{Status: "open"}, "e1 d3 d1"},
		{j, api.ListDisputes{Status: api.AllDisputes, Limit: 2}, "e1 d3 d2 d1"}, {c, api.ListDisputes{Status: api.AllDisputes}, ""},
	} {
		if _, got := lists(x.of, x.q); got != x.want {
			t.Errorf("%s lists %q for %+v, want %q", x.of.Agent, got, x.q, x.want)
		}
	}
	rows, _ := lists(j, api.ListDisputes{Status: api.AllDisputes})
	if d3 := rows[1]; d3.Session != first || !d3.Truncated || len(d3.Claim) > 240 || !slices.Equal(d3.For, []performatives.Agent{beta, judge}) {
		t.Errorf("what nobody has answered is %+v", d3)
	}
	if d1 := rows[3]; len(d1.Replies) > 0 || !slices.Equal(d1.For, []performatives.Agent{judge}) {
		t.Errorf("what was denied is %+v", d1)
	}
	for _, q := range []string{`{"status":"upheld"}`, `{"cursor":"here"}`, `{"cursor":"` + string(first) + ` x"}`} {
		testkit.Refused(t, a.Call(api.DisputeList.Name, q), session.MalformedEnvelope)
	}
	for how, restart := range map[string]func(){"it was closed": w.Down, "it was killed": w.Crash} {
		restart()
		w.Up()
		cached := w.Broker.Broker.Command.Counts().Cached
		again, _ := lists(j, api.ListDisputes{Status: api.AllDisputes})
		if diff := cmp.Diff(rows, again); diff != "" {
			t.Errorf("after %s (-before +after)\n%s", how, diff)
		}
		if now := w.Broker.Broker.Command.Counts().Cached; now > cached {
			t.Errorf("the list has read %d sessions after %s", now-cached, how)
		}
	}
	informs(b, second, performatives.Reply, performatives.ReplyData{DisputeID: "e1", Position: performatives.Concede})
	if _, got := lists(a, api.ListDisputes{}); got != "d3 d1" {
		t.Errorf("once one is conceded, %s are open", got)
	}
}
