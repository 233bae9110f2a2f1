package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace begins the name of every family.
const namespace = "parley"

// Set gives one sample of a family: its value, and its labels in their order.
type Set func(value float64, labels ...string)

// Gauge adds a family that is read at each scrape. read ends soon, and has labels of closed lists only.
func (m *Metrics) Gauge(name, help string, labels []string, read func(Set)) {
	m.registry.MustRegister(&gauge{prometheus.NewDesc(namespace+"_"+name, help, labels, nil), read})
}

type gauge struct {
	desc *prometheus.Desc
	read func(Set)
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(to chan<- *prometheus.Desc) { to <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(to chan<- prometheus.Metric) {
	g.read(func(value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
	})
}

// ages are of things that have begun and not ended.
type ages[K comparable] struct {
	mu    sync.Mutex
	since map[K]time.Time
}

// begin notes a thing, unless it has begun already.
func (a *ages[K]) begin(k K, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since = map[K]time.Time{}
	}
	if _, begun := a.since[k]; !begun {
		a.since[k] = at
	}
}

func (a *ages[K]) end(k K) (since time.Time, begun bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, begun = a.since[k]
	delete(a.since, k)
	return since, begun
}

// oldest is how many there are, and how old the oldest is.
func (a *ages[K]) oldest() (n int, age time.Duration) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, since := range a.since {
		age = max(age, now.Sub(since))
	}
	return len(a.since), age
}
