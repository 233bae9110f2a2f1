package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// GATEWAYS.md G3: insights count how sessions ended, what was countered, rejected and asked,
// also after a restart; a stranger counts nothing.
func TestInsights(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := newHTTPWorld(t, testkit.Options{Now: clock.Now})
	say := func(path, token, act, body string) {
		t.Helper()
		w.send("POST", path+"/messages", token, fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body)).is(http.StatusOK, nil)
	}
	remark := `,` + assessed + `}`
	agreed := sessionPath(w.match())
	say(agreed, w.tokens[cron], "PROPOSE", `{"proposalId":"p1","type":"x","subject":"s","terms":{"price":5,"days":1}`+remark)
	say(agreed, w.tokens[seller], "CLARIFY", `{"referenceId":"p1","questions":[{"field":"terms.days","question":"?"}]`+remark)
	say(agreed, w.tokens[cron], "COUNTER", `{"proposalId":"p2","referenceId":"p1","terms":{"price":5,"days":2}`+remark)
	say(agreed, w.tokens[seller], "COUNTER", `{"proposalId":"p3","referenceId":"p2","terms":{"price":6,"days":2}`+remark)
	clock.Advance(10 * time.Second)
	say(agreed, w.tokens[cron], "ACCEPT", `{"referenceId":"p3"`+remark)
	rejected := sessionPath(w.match())
	say(rejected, w.tokens[cron], "PROPOSE", `{"proposalId":"p1","type":"x","subject":"s","terms":{}`+remark)
	say(rejected, w.tokens[seller], "REJECT", `{"referenceId":"p1","code":"budget_exceeded","reason":"r","retryable":false`+remark)
	w.match() // stays open
	refused := sessionPath(w.invites(`"invitationTimeoutMs":600000`))
	say(refused, w.tokens[seller], "REJECT", `{"referenceId":"invitation","code":"capacity_unavailable","reason":"r","retryable":false}`)
	closed := sessionPath(w.match())
	w.send("DELETE", closed, w.tokens[cron], `{"outcome":"failed"}`).is(http.StatusOK, nil)

	ends := api.Ends{Agreed: 1, Rejected: 2, Failed: 1}
	want := api.Insights{
		Sessions: 4, Open: 1, Ends: ends, Modes: []api.ModeEnds{{Mode: "bilateral/1", Ends: ends}},
		Turns: []api.TurnCount{{Turns: 0, Sessions: 2}, {Turns: 2, Sessions: 1}, {Turns: 5, Sessions: 1}},
		Terms: []api.Frequency{{Name: "days", Count: 1}, {Name: "price", Count: 1}}, Asked: []api.Frequency{{Name: "terms.days", Count: 1}},
		Rejects:  []api.Frequency{{Name: "budget_exceeded", Count: 1}, {Name: "capacity_unavailable", Count: 1}},
		Complete: true, Read: 4, Of: 4,
	}
	clock.Advance(time.Second)
	for range 2 {
		var got api.Insights
		w.send("GET", "/v1/asp/insights", w.tokens[seller], "").is(http.StatusOK, &got)
		if got.Agreed.Count != 1 || got.Agreed.Median < 10_000 || got.Agreed.Median > 60_000 {
			t.Errorf("the time to agreement is %+v", got.Agreed)
		}
		got.Since, got.Until, got.Agreed = "", "", api.Times{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("insights: %s", diff)
		}
		w.Down()
		w.Up()
	}
	var with api.Insights
	query := "?with=" + url.QueryEscape(string(cron)) + "&with=" + url.QueryEscape("agent://no.where/x")
	for !with.Complete && t.Context().Err() == nil { // it was started again
		with = api.Insights{}
		w.send("GET", "/v1/asp/insights"+query, w.tokens[seller], "").is(http.StatusOK, &with)
	}
	if diff := cmp.Diff([]api.AgentEnds{{Agent: cron, Open: 1, Ends: ends}, {Agent: "agent://no.where/x"}}, with.Agents); diff != "" || with.Sessions != 4 {
		t.Errorf("with an agent: %s of %d", diff, with.Sessions)
	}
	var nobody api.Insights
	if w.send("GET", "/v1/asp/insights?with=agent://no.where/x", w.tokens[seller], "").is(http.StatusOK, &nobody); nobody.Sessions != 0 || nobody.Open != 0 {
		t.Errorf("with nobody: %+v", nobody)
	}
	w.send("GET", "/v1/asp/insights?"+strings.Repeat("with=x&", api.MaxNamed+1), w.tokens[seller], "").refused(http.StatusBadRequest, session.MalformedEnvelope)
	var none api.Insights
	if w.send("GET", "/v1/asp/insights", w.tokens[other], "").is(http.StatusOK, &none); none.Sessions != 0 || none.Open != 0 {
		t.Errorf("a stranger counts %+v", none)
	}
	if w.send("GET", "/v1/asp/insights?mode=asp/1", w.tokens[seller], "").is(http.StatusOK, &none); none.Sessions != 0 {
		t.Errorf("in another mode there are %+v", none)
	}
	until := clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	if w.send("GET", "/v1/asp/insights?until="+until, w.tokens[seller], "").is(http.StatusOK, &none); none.Sessions != 0 {
		t.Errorf("before that there are %+v", none)
	}
	w.send("GET", "/v1/asp/insights?since=monday", w.tokens[seller], "").refused(http.StatusBadRequest, session.MalformedEnvelope)
}

// A session counts for its principals and for who sees those of their organisations, open or
// over. For a delegate it does not, whether it was asked, has joined or has declined.
func TestInsightsOfDelegates(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	const auditor, boss, helper = performatives.Agent("human://widgets.co/ann"), performatives.Agent("human://other.io/boss"), performatives.Agent("agent://other.io/helper")
	w.Principal(helper)
	w.Principal(auditor, func(c *api.Card) { c.Registry.MayDecide, c.Registry.Auditor = false, true })
	w.Principal(boss, func(c *api.Card) { c.Registry.MayDecide = true })
	path := sessionPath(w.match())
	count := func(when string, want [2]int) { // of the principals' side: open, and over
		t.Helper()
		for who, counts := range map[performatives.Agent]bool{seller: true, cron: true, auditor: true, other: false, helper: false, boss: false} {
			token, hosted := w.tokens[who]
			ask := func(_ context.Context, q api.GetInsights) (got api.Insights, err error) {
				w.send("GET", "/v1/asp/insights?with="+url.QueryEscape(string(q.With[0])), token, "").is(http.StatusOK, &got)
				return got, nil
			}
			if !hosted {
				ask = w.Client(who).Insights
			}
			got, err := ask(w.Ctx, api.GetInsights{With: []performatives.Agent{seller}})
			for err == nil && !got.Complete && w.Ctx.Err() == nil {
				got, err = ask(w.Ctx, api.GetInsights{With: []performatives.Agent{seller}})
			}
			testkit.Must(t, err)
			shall := want
			if !counts {
				shall = [2]int{}
			}
			if has := [2]int{got.Open, got.Of}; has != shall || got.Agents[0].Open != shall[0] || got.Sessions != shall[1] {
				t.Errorf("%s: %s counts %v (%+v), want %v", when, who, has, got, shall)
			}
		}
	}
	delegates := func(to performatives.Agent) (asked api.Acceptance) {
		t.Helper()
		w.send("POST", path+"/messages", w.tokens[cron], fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"x","authority":"full"}}`, to)).is(http.StatusOK, &asked)
		return asked
	}
	toOther, toHelper := delegates(other), delegates(helper)
	count("asked", [2]int{1, 0})
	w.send("POST", path+"/messages", w.tokens[other], fmt.Sprintf(`{"performative":"REJECT","body":{"referenceId":%q,"code":"unspecified","reason":"no","retryable":false}}`, toOther.Message)).is(http.StatusOK, nil)
	_, err := w.Client(helper).Session(toOther.Session).Accept(w.Ctx, string(toHelper.Message))
	testkit.Must(t, err)
	if got := w.send("GET", path, w.tokens[other], ""); got.status != http.StatusNotFound {
		t.Errorf("one that has declined reads the session: %d %s", got.status, got.body)
	}
	for _, when := range []string{"declined and joined", "after a restart"} {
		count(when, [2]int{1, 0})
		w.Down()
		w.Up()
	}
	w.send("DELETE", path, w.tokens[cron], `{"outcome":"failed"}`).is(http.StatusOK, nil)
	count("over", [2]int{0, 1})
}
