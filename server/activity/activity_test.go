package activity

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gather reads all metrics of a registry.
func gather(t *testing.T, r *prometheus.Registry) Families {
	t.Helper()
	all := Families{}
	gathered, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gathered {
		all[f.GetName()] = f
	}
	return all
}

// Times are as exact as the buckets of a native histogram, which are a tenth apart.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took", NativeHistogramBucketFactor: 1.1})
	registry.MustRegister(h)
	for range 1000 {
		h.Observe(100) // before the first sample
	}
	before := Sample{time.Now(), []Families{gather(t, registry)}}
	for i := range 1000 {
		h.Observe(float64(i+1) / 1000)
	}
	took := Sample{time.Now(), []Families{gather(t, registry)}}.times(before, "took", "")[""]
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		if got := took.quantile(q); math.Abs(got-q) > 0.1*q {
			t.Errorf("the quantile %v is %v", q, got)
		}
	}
	if took.count() != 1000 {
		t.Errorf("%v values", took.count())
	}
}

// Rates are of the time since somebody asked, if that was not long ago.
func TestWatch(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	acts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_acts_total"}, []string{"performative", "outcome", "code"})
	registry.MustRegister(acts)
	says := acts.WithLabelValues("PROPOSE", "accepted", "none")
	says.Add(1e6) // before anybody asked
	var w Watch
	for _, step := range []struct {
		acts   float64
		passed time.Duration
		want   float64 // acts a second
	}{{0, 0, 0}, {50, 4 * time.Second, 10}, {50, 5 * time.Second, 10}, {0, 0, 10}, {1000, 20 * time.Second, 50}, {0, 0, 50}, {1e6, 2 * stale, 0}} {
		says.Add(step.acts)
		w.from.At, w.next.At = w.from.At.Add(-step.passed), w.next.At.Add(-step.passed)
		now, err := w.Now(t.Context(), func() Families { return gather(t, registry) })
		if err != nil || len(now.Acts) != 1 || math.Abs(now.Acts[0].Accepted-step.want) > step.want/10+0.1 {
			t.Errorf("%+v: %+v, %v", step, now.Acts, err)
		}
	}
}
