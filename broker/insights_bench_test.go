package broker_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

var insightsOver = flag.Int("insights-over", 200, "sessions that BenchmarkInsights counts")

// Insights over many sessions: what the first question after a start takes, with how many
// calls, and what every later one takes (docs/PERFORMANCE.md).
func BenchmarkInsights(b *testing.B) {
	n := *insightsOver
	br := testkit.StartBroker(b, testkit.Options{
		Dev: true, Sync: time.Minute, Limits: limits.Limits{Rate: -1, Sessions: -1, PrincipalBytes: -1, OrganisationBytes: -1},
	})
	var wait sync.WaitGroup
	for w := range 16 {
		wait.Go(func() {
			for i := w; i < n; i += 16 {
				dealt(b, br, i)
			}
		})
	}
	wait.Wait()
	br.Down()
	br.Up()
	began, calls, longest := time.Now(), 0, time.Duration(0)
	for complete := false; !complete; calls++ {
		asked := time.Now()
		complete = counts(b, br, n)
		longest = max(longest, time.Since(asked))
	}
	first := time.Since(began)
	for b.Loop() {
		counts(b, br, n)
	}
	b.ReportMetric(first.Seconds(), "s/first")
	b.ReportMetric(float64(calls), "calls/first")
	b.ReportMetric(float64(longest.Milliseconds()), "ms/call")
}

// counts asks as an operator, and reports whether the answer counts all sessions.
func counts(b *testing.B, br *testkit.Broker, n int) bool {
	b.Helper()
	answers := make(chan api.Insights, 1)
	br.Broker.Verbs.Call(b.Context(), api.Caller{Operator: true}, api.InsightsGet.Name, []byte(`{}`), func() {}, func(reply any, _ bool, err error) {
		var got api.Insights
		data, failed := json.Marshal(reply)
		if err != nil || failed != nil || json.Unmarshal(data, &got) != nil {
			b.Error(err, failed)
			got.Complete = true
		}
		answers <- got
	})
	got := <-answers
	if got.Of != n || got.Complete && got.Ends.Agreed != n {
		b.Fatalf("%+v, want %d sessions", got, n)
	}
	return got.Complete
}

// dealt is a session in bilateral/1 that agreed.
func dealt(b *testing.B, br *testkit.Broker, i int) {
	id := newID()
	says := func(a performatives.Agent, act, body string) {
		envelope := fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,"content":{"body":%s}}`,
			newID(), id, time.Now().UTC().Format(time.RFC3339Nano), a, act, strings.TrimSuffix(body, "}")+`,"assessment":{"reasoning":"r","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}}`)
		if _, err := br.Broker.Gateway.SubmitAs(b.Context(), a, id, []byte(envelope)); err != nil {
			b.Error(err)
		}
	}
	buyer := performatives.Agent(fmt.Sprintf("agent://acme.com/buyer%d", i%50))
	seller := performatives.Agent(fmt.Sprintf("agent://widgets.co/seller%d", i%70))
	says(buyer, "PROPOSE", fmt.Sprintf(`{"proposalId":"i","type":"session-invitation","subject":"s","terms":{"mode":"bilateral/1","participants":[%q]}}`, seller))
	says(seller, "ACCEPT", `{"referenceId":"i"}`)
	says(buyer, "PROPOSE", `{"proposalId":"p1","type":"service-agreement","subject":"s","terms":{"price":5,"days":1}}`)
	says(seller, "ACCEPT", `{"referenceId":"p1"}`)
}
