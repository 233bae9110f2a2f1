package activity

import (
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// since is in seconds.
func (s Sample) since(before Sample) float64 {
	return max(s.At.Sub(before.At), time.Millisecond).Seconds()
}

// labelled joins the values of labels.
func labelled(m *dto.Metric, labels []string) string {
	var values []string
	for _, label := range labels {
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				values = append(values, l.GetValue())
			}
		}
	}
	return strings.Join(values, " ")
}

// values are those of a counter or a gauge, by labels.
func (b Families) values(family string, labels ...string) map[string]float64 {
	all := map[string]float64{}
	for _, m := range b[family].GetMetric() {
		all[labelled(m, labels)] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return all
}

// summed is a gauge of all brokers together.
func (s Sample) summed(family, label string) map[string]float64 {
	all := map[string]float64{}
	for _, b := range s.Brokers {
		for of, v := range b.values(family, label) {
			all[of] += v
		}
	}
	return all
}

// shared is a gauge that is the same at every broker, or whose highest value matters.
func (s Sample) shared(family, label string) map[string]float64 {
	all := map[string]float64{}
	for _, b := range s.Brokers {
		for of, v := range b.values(family, label) {
			all[of] = max(all[of], v)
		}
	}
	return all
}

// rates are of a counter: what each second added to it, at all brokers that answered both times. A counter that
// fell began anew.
func (s Sample) rates(before Sample, family string, labels ...string) map[string]float64 {
	all := map[string]float64{}
	for i, b := range s.Brokers {
		if b == nil || before.Brokers[i] == nil {
			continue
		}
		was := before.Brokers[i].values(family, labels...)
		for of, v := range b.values(family, labels...) {
			if v >= was[of] {
				v -= was[of]
			}
			all[of] += v / s.since(before)
		}
	}
	return all
}
