package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// scrape is what /metrics serves, as lines.
func scrape(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	testkit.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d %s", answer.StatusCode, body)
	}
	return string(body)
}

// OPERATIONS.md, Metrics: a negotiation with a refused act and an escalation that a human decides, by the
// figures that Prometheus reads. No name of anybody is among them, whatever anybody sends.
func TestMetrics(t *testing.T) {
	t.Parallel()
	clock := testkit.StoppedClock(time.Now())
	w := testkit.NewWorld(t, testkit.Options{Monitor: "127.0.0.1:0", Now: clock.Now})
	a, b := w.Principal(alpha), w.Principal(beta)
	alice := w.Principal("human://acme.com/alice", func(c *api.Card) { c.Registry.MayDecide = true })
	figures := func(what string, want ...string) {
		t.Helper()
		var missing string
		if err := testkit.Until(w.Ctx, func() bool {
			lines := strings.Split(scrape(t, w.MonitorAddr), "\n")
			missing = ""
			for _, line := range want {
				if !contains(lines, "parley_"+line) {
					missing += "\nparley_" + line
				}
			}
			return missing == ""
		}); err != nil {
			t.Errorf("%s: no%s\nin\n%s", what, missing, scrape(t, w.MonitorAddr))
		}
	}

	id := w.Open(a, b)
	testkit.Refused(t, b.Submit(id, b.Envelope(id, &performatives.AcceptBody{ReferenceID: "nothing"})), session.ProposalUnknown)
	again := a.Envelope(id, testkit.Offer("p1", 100))
	testkit.Accepted(t, a.Submit(id, again))
	testkit.Accepted(t, a.Submit(id, again))

	escalates := a.Say(id, &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: []byte(`"?"`)})
	figures("while a human is asked",
		`acts_total{code="none",outcome="accepted",performative="PROPOSE"} 2`,
		`acts_total{code="none",outcome="accepted",performative="ESCALATE"} 1`,
		`acts_total{code="none",outcome="repeated",performative="PROPOSE"} 1`,
		`acts_total{code="proposal_unknown",outcome="refused",performative="ACCEPT"} 1`,
		`act_seconds_count{outcome="accepted"} 5`, `act_seconds_count{outcome="refused"} 1`,
		`act_stage_seconds_count{stage="append"} 5`, `act_stage_seconds_count{stage="deliver"} 5`,
		`sessions{mode="asp/1",state="ESCALATED"} 1`, `sessions{mode="asp/1",state="CONVERSING"} 0`,
		`escalations{due="later"} 1`, `escalations{due="overdue"} 0`,
		`cache_sessions 1`, `partitions_owned 128`, `brokers{state="alive"} 1`, `ready 1`,
		`queue_length{queue="session"} 0`, `unapplied_entries 0`, `stuck_sessions 0`, `stuck_seconds 0`,
	)

	clock.Advance(time.Hour - time.Minute) // of the four that a high urgency has
	later := func(d *performatives.Draft) { d.Timestamp = clock.Now() }
	alice.Say(id, testkit.Ruling(escalates.Message, performatives.Approved), later)
	b.Say(id, &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"}, later)
	a.Say(id, &performatives.CloseBody{Outcome: "completed"}, later)
	figures("when it is over",
		`sessions{mode="asp/1",state="CLOSED"} 1`, `sessions{mode="asp/1",state="ESCALATED"} 0`,
		`escalation_decision_seconds_count{decision="approved"} 1`, `escalation_decision_seconds_bucket{decision="approved",le="900"} 0`,
		`escalation_decision_seconds_bucket{decision="approved",le="3600"} 1`, `escalations{due="later"} 0`,
		`log_leaves{state="published"} 1`, `log_leaves{state="waiting"} 0`, `lag_seconds{of="log"} 0`, `lag_seconds{of="inbox"} 0`,
	)

	// What a sender chooses makes no series.
	before := strings.Count(scrape(t, w.MonitorAddr), "\n")
	for n := range 50 {
		strange := testkit.NewSession()
		envelope := strings.Replace(string(a.Envelope(strange, testkit.Fact("x"), later)), "INFORM", fmt.Sprint("MADE-UP-", n), 1)
		testkit.Refused(t, a.Submit(strange, []byte(envelope)), session.UnknownPerformative)
	}
	figures("after what nobody knows", `acts_total{code="unknown_performative",outcome="refused",performative="other"} 50`)
	text := scrape(t, w.MonitorAddr)
	if more := strings.Count(text, "\n") - before; more > 3 {
		t.Errorf("50 performatives that nobody knows made %d lines", more)
	}
	for _, name := range []string{string(id), "acme.com", "widgets.co", "alice", "MADE-UP-", w.Server.Broker.Options.ID} {
		if strings.Contains(text, name) {
			t.Errorf("/metrics names %s", name)
		}
	}
	if len(text) > 256<<10 {
		t.Errorf("/metrics has %d bytes", len(text))
	}
}

func contains(lines []string, line string) bool {
	for _, l := range lines {
		if l == line {
			return true
		}
	}
	return false
}

// Without a monitor nothing is counted, and the listener of principals has no metrics.
func TestNoMetrics(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	w.Open(w.Principal(alpha), w.Principal(beta))
	if w.Server.Broker.Options.Metrics != nil {
		t.Error("there are metrics that nobody scrapes")
	}
	answer, err := http.Get("http://" + w.HTTPAddr + "/metrics")
	testkit.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics of HTTP: %d", answer.StatusCode)
	}
}
