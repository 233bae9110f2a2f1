package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func some() *Metrics {
	return New(Vocabulary{Acts: []string{"PROPOSE"}, Codes: []string{"wrong_state"}, Limits: []string{"rate"}}, "1.2.3")
}

// scraped is what a scraper with an Accept header gets.
func scraped(t *testing.T, m *Metrics, accept string) (format, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(answer, r)
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != http.StatusOK {
		t.Fatal(answer.Code, err)
	}
	return answer.Header().Get("Content-Type"), string(data)
}

// What is not on a closed list is other.
func TestClosed(t *testing.T) {
	t.Parallel()
	m := some()
	for _, said := range []string{"PROPOSE", "agent://acme.com/a", ""} {
		act := Begin(context.Background(), m, nil, "s")
		act.Is(said, "m", nil)
		act.Answered(Refused, said)
	}
	m.Unread("wrong_state")
	m.Limited("rate")
	m.Limited("agent://acme.com/a")
	m.Decided("a secret", time.Minute)
	m.Failed("a secret")
	_, text := scraped(t, m, "")
	for _, line := range []string{
		`parley_acts_total{code="other",outcome="refused",performative="PROPOSE"} 1`,
		`parley_acts_total{code="other",outcome="refused",performative="other"} 2`,
		`parley_acts_total{code="wrong_state",outcome="refused",performative="other"} 1`,
		`parley_limits_hit_total{limit="rate"} 1`, `parley_limits_hit_total{limit="other"} 1`,
		`parley_escalation_decision_seconds_count{decision="other"} 1`, `parley_side_effect_failures_total{effect="other"} 1`,
		`parley_build_info{go=`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(text, "acme") || strings.Contains(text, "secret") {
		t.Errorf("a sender's words:\n%s", text)
	}
}

// Who scrapes protobuf gets native histograms.
func TestNative(t *testing.T) {
	t.Parallel()
	m := some()
	m.Fsynced(3 * time.Millisecond)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	native := 0
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if h := one.GetHistogram(); strings.HasPrefix(family.GetName(), namespace) && h != nil {
				native++
				if h.Schema == nil {
					t.Errorf("%s is no native histogram", family.GetName())
				}
			}
		}
	}
	if native == 0 {
		t.Error("there is no histogram")
	}
	if format, _ := scraped(t, m, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"); !strings.HasPrefix(format, "application/vnd.google.protobuf") {
		t.Errorf("served as %s", format)
	}
}

// An entry is delivered once, and a session is stuck since it first failed.
func TestAges(t *testing.T) {
	t.Parallel()
	m := some()
	m.Appended(7)
	if m.Undelivered() <= 0 {
		t.Error("nothing is undelivered")
	}
	m.Delivered(7)
	m.Delivered(7)
	m.Delivered(8)
	long := time.Now().Add(-time.Minute)
	m.Stuck("s", long)
	m.Stuck("s", time.Now())
	if n, age := m.stuck.oldest(); n != 1 || age < time.Minute {
		t.Errorf("%d stuck, for %s", n, age)
	}
	m.Unstuck("s")
	if n, _ := m.stuck.oldest(); n != 0 || m.Undelivered() != 0 {
		t.Errorf("%d stuck, undelivered for %s", n, m.Undelivered())
	}
	if _, text := scraped(t, m, ""); !strings.Contains(text, `parley_act_stage_seconds_count{stage="deliver"} 1`) {
		t.Error("an entry was not delivered once")
	}
}

// Nil counts nothing, and allocates nothing.
func TestNil(t *testing.T) { //nolint:paralleltest // it counts allocations
	var m *Metrics
	failed := errors.New("x")
	if n := testing.AllocsPerRun(100, func() {
		act := Begin(context.Background(), m, nil, "s")
		act.Is("PROPOSE", "m", nil)
		act.Reached(Wait)
		act.Answered(Accepted, "")
		m.Unread("")
		m.Looked(true)
		m.Failed("")
		m.Stuck("s", time.Time{})
		m.Unstuck("s")
		m.Decided("", 0)
		m.Limited("")
		m.Recovered(failed)
		m.HandedOver()
		m.Fsynced(0)
		m.Appended(1)
		m.Delivered(1)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// What the hooks of one act cost: a few hundred nanoseconds more than nothing.
func BenchmarkAct(b *testing.B) {
	b.ReportAllocs()
	for name, m := range map[string]*Metrics{"off": nil, "on": some()} {
		b.Run(name, func(b *testing.B) {
			for n := range b.N {
				act := Begin(context.Background(), m, nil, "s")
				act.Is("PROPOSE", "m", nil)
				for s := Wait; s < Answer; s++ {
					act.Reached(s)
				}
				act.Answered(Accepted, "")
				m.Looked(true)
				m.Appended(uint64(n))
				m.Delivered(uint64(n))
				m.Unstuck("s")
			}
		})
	}
}
