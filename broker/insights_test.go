package broker_test

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
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// GATEWAYS.md G3: insights count how sessions ended, what was countered, rejected and asked,
// also after a restart; a non-participant counts nothing.
func TestInsights(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := testkit.NewHosted(t, testkit.Options{Now: clock.Now})
	say := func(path, token, act, body string) {
		t.Helper()
		w.Send("POST", path+"/messages", token, fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body)).Is(http.StatusOK, nil)
	}
	remark := `,` + testkit.Assessed + `}`
	objects := `,"assessment":{"reasoning":"Over the budget: r","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}}`
	agreed := testkit.SessionPath(w.Match())
	say(agreed, w.Tokens[cron], "PROPOSE", `{"proposalId":"p1","type":"x","subject":"s","terms":{"price":5,"days":1}`+remark)
	say(agreed, w.Tokens[seller], "CLARIFY", `{"referenceId":"p1","questions":[{"field":"terms.days","question":"?"}]`+objects)
	say(agreed, w.Tokens[cron], "COUNTER", `{"proposalId":"p2","referenceId":"p1","terms":{"price":5,"days":2}`+remark)
	say(agreed, w.Tokens[seller], "COUNTER", `{"proposalId":"p3","referenceId":"p2","terms":{"price":6,"days":2}`+remark)
	clock.Advance(10 * time.Second)
	say(agreed, w.Tokens[cron], "ACCEPT", `{"referenceId":"p3"`+remark)
	rejected := testkit.SessionPath(w.Match())
	say(rejected, w.Tokens[cron], "PROPOSE", `{"proposalId":"p1","type":"x","subject":"s","terms":{}`+remark)
	say(rejected, w.Tokens[seller], "REJECT", `{"referenceId":"p1","code":"budget_exceeded","reason":"r","retryable":false`+objects)
	w.Match() // stays open
	refused := testkit.SessionPath(w.Invite(`"invitationTimeoutMs":600000`))
	say(refused, w.Tokens[seller], "REJECT", `{"referenceId":"invitation","code":"capacity_unavailable","reason":"r","retryable":false}`)
	closed := testkit.SessionPath(w.Match())
	w.Send("DELETE", closed, w.Tokens[cron], `{"outcome":"failed"}`).Is(http.StatusOK, nil)

	ends := api.Ends{Agreed: 1, Rejected: 2, Failed: 1}
	want := api.Insights{
		Sessions: 4, Open: 1, Ends: ends, Modes: []api.ModeEnds{{Mode: "bilateral/1", Ends: ends}},
		Types:      []api.TypeEnds{{Type: "x", Ends: api.Ends{Agreed: 1, Rejected: 1}}},
		Scenarios:  []api.ScenarioEnds{{Scenario: "personal and personal", Ends: ends, Turns: []api.TurnCount{{Turns: 0, Sessions: 2}, {Turns: 2, Sessions: 1}, {Turns: 5, Sessions: 1}}}},
		Objections: []api.Frequency{{Name: "budget", Count: 2}, {Name: "fits", Count: 1}},
		Turns:      []api.TurnCount{{Turns: 0, Sessions: 2}, {Turns: 2, Sessions: 1}, {Turns: 5, Sessions: 1}},
		Terms:      []api.Frequency{{Name: "days", Count: 1}, {Name: "price", Count: 1}}, Asked: []api.Frequency{{Name: "terms.days", Count: 1}},
		Rejects:  []api.Frequency{{Name: "budget_exceeded", Count: 1}, {Name: "capacity_unavailable", Count: 1}},
		Complete: true, Read: 4, Of: 4,
	}
	clock.Advance(time.Second)
	for range 2 {
		var got api.Insights
		w.Send("GET", "/v1/asp/insights", w.Tokens[seller], "").Is(http.StatusOK, &got)
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
	testkit.Eventually(t, "all is counted again", func() bool { // it was started again
		with = api.Insights{}
		w.Send("GET", "/v1/asp/insights"+query, w.Tokens[seller], "").Is(http.StatusOK, &with)
		return with.Complete
	})
	if diff := cmp.Diff([]api.AgentEnds{{Agent: cron, Open: 1, Ends: ends}, {Agent: "agent://no.where/x"}}, with.Agents); diff != "" || with.Sessions != 4 {
		t.Errorf("with an agent: %s of %d", diff, with.Sessions)
	}
	var nobody api.Insights
	if w.Send("GET", "/v1/asp/insights?with=agent://no.where/x", w.Tokens[seller], "").Is(http.StatusOK, &nobody); nobody.Sessions != 0 || nobody.Open != 0 {
		t.Errorf("with nobody: %+v", nobody)
	}
	w.Send("GET", "/v1/asp/insights?"+strings.Repeat("with=x&", api.MaxNamed+1), w.Tokens[seller], "").Refused(http.StatusBadRequest, session.MalformedEnvelope)
	var none api.Insights
	if w.Send("GET", "/v1/asp/insights", w.Tokens[other], "").Is(http.StatusOK, &none); none.Sessions != 0 || none.Open != 0 {
		t.Errorf("a non-participant counts %+v", none)
	}
	if w.Send("GET", "/v1/asp/insights?mode=asp/1", w.Tokens[seller], "").Is(http.StatusOK, &none); none.Sessions != 0 {
		t.Errorf("in another mode there are %+v", none)
	}
	a := w.Send("GET", "/v1/asp/insights?mode=zzz", w.Tokens[seller], "")
	a.Refused(http.StatusBadRequest, session.MalformedEnvelope)
	if says := `/mode: there is no mode \"zzz\"; there is asp/1, bilateral/1, binding/1, convergent/1`; !strings.Contains(string(a.Body), says) {
		t.Errorf("of an unknown mode it says %s", a.Body)
	}
	until := clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	if w.Send("GET", "/v1/asp/insights?until="+until, w.Tokens[seller], "").Is(http.StatusOK, &none); none.Sessions != 0 {
		t.Errorf("before that there are %+v", none)
	}
	w.Send("GET", "/v1/asp/insights?since=monday", w.Tokens[seller], "").Refused(http.StatusBadRequest, session.MalformedEnvelope)
}

// A session counts whose id is made of a hash, as the SDKs do: its time is no time.
func TestInsightsOfHashedIDs(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	a, b, id := w.Principal(alpha), w.Principal(beta), performatives.SessionID("f47ac10b-58cc-7372-8567-0e02b2c3d479")
	a.Say(id, testkit.Invitation(b.Agent))
	b.Say(id, &performatives.RejectBody{ReferenceID: "inv", Code: "unspecified", Reason: "no"})
	testkit.Eventually(t, "all is counted", func() bool {
		got, err := client.Do(w.Ctx, w.Client(alpha), api.InsightsGet, api.GetInsights{})
		testkit.Must(t, err)
		if got.Complete && got.Sessions != 1 {
			t.Fatalf("%d sessions are counted", got.Sessions)
		}
		return got.Complete
	})
}

// A session counts for its principals and for who sees those of their organisations, open or
// over. For a delegate it does not, whether it was asked, has joined or has declined.
func TestInsightsOfDelegates(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	const auditor, boss, helper = performatives.Agent("human://widgets.co/ann"), performatives.Agent("human://other.io/boss"), performatives.Agent("agent://other.io/helper")
	w.Principal(helper)
	w.Principal(auditor, func(c *api.Card) { c.Registry.MayDecide, c.Registry.Auditor = false, true })
	w.Principal(boss, func(c *api.Card) { c.Registry.MayDecide = true })
	path := testkit.SessionPath(w.Match())
	count := func(when string, want [2]int) { // of the principals' side: open, and over
		t.Helper()
		for who, counts := range map[performatives.Agent]bool{seller: true, cron: true, auditor: true, other: false, helper: false, boss: false} {
			token, hosted := w.Tokens[who]
			ask := func(_ context.Context, q api.GetInsights) (got api.Insights, err error) {
				w.Send("GET", "/v1/asp/insights?with="+url.QueryEscape(string(q.With[0])), token, "").Is(http.StatusOK, &got)
				return got, nil
			}
			if !hosted {
				ask = func(ctx context.Context, q api.GetInsights) (api.Insights, error) {
					return client.Do(ctx, w.Client(who), api.InsightsGet, q)
				}
			}
			var got api.Insights
			testkit.Eventually(t, "all is counted", func() bool {
				var err error
				got, err = ask(w.Ctx, api.GetInsights{With: []performatives.Agent{seller}})
				testkit.Must(t, err)
				return got.Complete
			})
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
		w.Send("POST", path+"/messages", w.Tokens[cron], fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"x","authority":"full"}}`, to)).Is(http.StatusOK, &asked)
		return asked
	}
	toOther, toHelper := delegates(other), delegates(helper)
	count("asked", [2]int{1, 0})
	w.Send("POST", path+"/messages", w.Tokens[other], fmt.Sprintf(`{"performative":"REJECT","body":{"referenceId":%q,"code":"unspecified","reason":"no","retryable":false}}`, toOther.Message)).Is(http.StatusOK, nil)
	_, err := w.Client(helper).Session(toOther.Session).Accept(w.Ctx, string(toHelper.Message))
	testkit.Must(t, err)
	if got := w.Send("GET", path, w.Tokens[other], ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("one that has declined reads the session: %d %s", got.StatusCode, got.Body)
	}
	for _, when := range []string{"declined and joined", "after a restart"} {
		count(when, [2]int{1, 0})
		w.Down()
		w.Up()
	}
	w.Send("DELETE", path, w.Tokens[cron], `{"outcome":"failed"}`).Is(http.StatusOK, nil)
	count("over", [2]int{0, 1})
}
