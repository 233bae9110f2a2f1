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

// Who asks again at once is told of the same time as before; later, of the time since it asked.
func TestWatch(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	acts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_acts_total"}, []string{"performative", "outcome", "code"})
	registry.MustRegister(acts)
	w := NewWatch()
	ago := func(d time.Duration) { // so long ago was all that the watch has seen
		w.from.At, w.next.At = w.from.At.Add(-d), w.next.At.Add(-d)
	}
	for _, step := range []struct {
		acts   float64
		passed time.Duration
		want   float64 // acts a second
	}{{50, 5 * time.Second, 10}, {50, 5 * time.Second, 10}, {0, 0, 10}, {200, 20 * time.Second, 10}, {1000, 20 * time.Second, 50}, {0, 0, 50}} {
		acts.WithLabelValues("PROPOSE", "accepted", "none").Add(step.acts)
		ago(step.passed)
		now := w.Now(gather(t, registry))
		if len(now.Acts) != 1 || math.Abs(now.Acts[0].Accepted-step.want) > step.want/10 {
			t.Errorf("%+v: %+v", step, now.Acts)
		}
	}
}
