// Package telemetry counts what a broker does, serves the figures to Prometheus, and exports traces, metrics and the
// log by OTLP.
//
//	m := telemetry.New(telemetry.Vocabulary{Acts: acts, Codes: codes}, "1.0.0")
//	http.Handle("/metrics", m.Handler(errors))
//	x, err := telemetry.Open(telemetry.Exporter{URL: "http://localhost:4318", Sample: 1}, m, "1.0.0", id, log)
//	act := telemetry.Begin(x.Traces.Parent(headers), m, x.Traces, session) // an act arrived
//	act.Reached(telemetry.Judge)                             // the stage before it took so long
//	act.Answered("refused", "malformed")
//
// A nil *Metrics counts nothing, a nil *Traces exports nothing, and without both no clock is read: whoever has
// none calls the same methods. A span has no body, key or token, and of a refusal only its code.
//
// A label has one of a closed list of values. What is not on the list counts as "other", so that nobody
// outside decides how many series there are, and no series names a person, an agent or a session.
package telemetry

import (
	"log"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// other is the label of what is not on a closed list.
const other = "other"

// A Vocabulary has the closed lists of labels.
type Vocabulary struct {
	Acts        []string // performatives
	Codes       []string // of refusals
	SideEffects []string
	Decisions   []string // that end an escalation
	Limits      []string
}

// Metrics are the families of one broker.
type Metrics struct {
	registry *prometheus.Registry
	known    map[string]map[string]bool // by label

	acts       *prometheus.CounterVec
	actSeconds map[string]prometheus.Observer // by outcome
	stages     [stages]prometheus.Observer
	effects    *prometheus.CounterVec
	decisions  *prometheus.HistogramVec
	lookups    [2]prometheus.Counter
	limits     *prometheus.CounterVec
	recoveries [2]prometheus.Counter
	handOvers  prometheus.Counter
	fsyncs     prometheus.Histogram

	undelivered ages[uint64] // entries that not all inboxes have, by their place in the stream
	stuck       ages[string] // sessions whose side effects fail
}

// Outcomes of an act.
const (
	Accepted = "accepted"
	Repeated = "repeated" // the same bytes were accepted before
	Refused  = "refused"

	none = "none" // the code of what was not refused
)

// Classic buckets, for who scrapes no native histograms.
var (
	fast = prometheus.ExponentialBuckets(0.00025, 4, 9) // to 16 s
	slow = []float64{60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// New makes the families of a broker that starts, of a version of parley.
func New(v Vocabulary, version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), known: map[string]map[string]bool{}, actSeconds: map[string]prometheus.Observer{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.acts = m.counter("acts_total", "Acts that were judged here. Of an act that was refused before it was read, the performative is other.", "performative", "outcome", "code")
	for _, act := range m.only("performative", v.Acts) {
		m.acts.WithLabelValues(act, Accepted, none)
	}
	m.only("code", v.Codes)
	took := m.histogram("act_seconds", "Time from the arrival of an act to its answer.", fast, "outcome")
	for _, outcome := range []string{Accepted, Repeated, Refused} {
		m.actSeconds[outcome] = took.WithLabelValues(outcome)
	}
	stage := m.histogram("act_stage_seconds", "Time that one stage of an act took.", fast, "stage")
	for s, name := range stageNames {
		m.stages[s] = stage.WithLabelValues(name)
	}
	m.effects = m.counter("side_effect_failures_total", "Side effects of an accepted act that failed, and are tried again.", "effect")
	for _, effect := range m.only("effect", v.SideEffects) {
		m.effects.WithLabelValues(effect)
	}
	m.decisions = m.histogram("escalation_decision_seconds", "Time from an ESCALATE to the end of its escalation.", slow, "decision")
	for _, how := range m.only("decision", v.Decisions) {
		m.decisions.WithLabelValues(how)
	}
	lookups := m.counter("cache_lookups_total", "Acts and reads whose session was cached (hit), or was read from the store (miss).", "result")
	m.lookups = [2]prometheus.Counter{lookups.WithLabelValues("miss"), lookups.WithLabelValues("hit")}
	m.limits = m.counter("limits_hit_total", "Requests that were refused by a limit.", "limit")
	for _, limit := range m.only("limit", v.Limits) {
		m.limits.WithLabelValues(limit)
	}
	recoveries := m.counter("recoveries_total", "Recoveries of the work of another broker, or of the one before this.", "result")
	m.recoveries = [2]prometheus.Counter{recoveries.WithLabelValues("failed"), recoveries.WithLabelValues("done")}
	m.handOvers = m.counter("handovers_total", "Sessions that this broker asked its peers to apply the side effects of.").WithLabelValues()
	m.fsyncs = prometheus.NewHistogram(histogram("fsync_seconds", "Time of one fsync of the embedded server's store that acts wait for.", fast))
	m.registry.MustRegister(m.fsyncs)

	m.gauges()
	m.Gauge("build_info", "1, with what runs as labels.", []string{"version", "go"}, func(set Set) { set(1, version, runtime.Version()) })
	return m
}

// gauges are those of what the hooks are told.
func (m *Metrics) gauges() {
	m.Gauge("stuck_sessions", "Sessions whose side effects fail and are tried again.", nil, func(set Set) {
		n, _ := m.stuck.oldest()
		set(float64(n))
	})
	m.Gauge("stuck_seconds", "How long the side effects of a session have failed, at most.", nil, func(set Set) {
		_, age := m.stuck.oldest()
		set(age.Seconds())
	})
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(histogram(name, help, buckets), labels)
	m.registry.MustRegister(h)
	return h
}

// histogram is a native one whose buckets are at most a tenth apart.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// only notes the values of a label.
func (m *Metrics) only(label string, values []string) []string {
	known := map[string]bool{}
	for _, v := range values {
		known[v] = true
	}
	m.known[label] = known
	return append(slices.Clone(values), other)
}

// closed is a value that a label may have.
func (m *Metrics) closed(label, value string) string {
	if m.known[label][value] {
		return value
	}
	return other
}

// Bounds of a scrape.
const (
	scrapesAtOnce = 2
	scrapeWithin  = 10 * time.Second
)

// Families are all metrics as they are now, by name.
func (m *Metrics) Families() map[string]*dto.MetricFamily {
	all := map[string]*dto.MetricFamily{}
	gathered, _ := m.registry.Gather() // what could be gathered is there nevertheless
	for _, f := range gathered {
		all[f.GetName()] = f
	}
	return all
}

// Handler answers scrapes.
func (m *Metrics) Handler(errors *log.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errors, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeWithin,
	})
}
