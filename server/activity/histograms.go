package activity

import (
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// A histogram has buckets in the order of their bounds.
type histogram []bucket

type bucket struct {
	lower, upper, count float64
}

// times are what a native histogram was told since the scrape before, at all brokers that answered both times.
func (s Sample) times(before Sample, family, label string) map[string]histogram {
	all := map[string]histogram{}
	for i, b := range s.Brokers {
		if b == nil || before.Brokers[i] == nil {
			continue
		}
		was := map[string]*dto.Histogram{}
		for _, m := range before.Brokers[i][family].GetMetric() {
			was[labelled(m, []string{label})] = m.GetHistogram()
		}
		for _, m := range b[family].GetMetric() {
			of := labelled(m, []string{label})
			all[of] = append(all[of], bucketsSince(was[of], m.GetHistogram())...)
		}
	}
	for _, h := range all {
		slices.SortFunc(h, func(a, b bucket) int { return cmp.Compare(a.upper, b.upper) })
	}
	return all
}

// bucketsSince are those of a native histogram without what was in it before, unless it began anew or with other
// bounds.
func bucketsSince(was, now *dto.Histogram) (h histogram) {
	counts := bucketCounts(now)
	if now.GetSampleCount() >= was.GetSampleCount() && now.GetSchema() == was.GetSchema() {
		for i, n := range bucketCounts(was) {
			counts[i] -= n
		}
	}
	base := math.Exp2(math.Exp2(-float64(now.GetSchema())))
	for i, n := range counts {
		if n > 0 {
			h = append(h, bucket{math.Pow(base, float64(i-1)), math.Pow(base, float64(i)), float64(n)})
		}
	}
	return h
}

// bucketCounts are what is in the buckets of a native histogram, by their index. A span has an offset from the end
// of the one before, and each count is a difference from the one before.
func bucketCounts(h *dto.Histogram) map[int]int64 {
	counts := map[int]int64{}
	deltas := h.GetPositiveDelta()
	index, n := 0, int64(0)
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range min(int(span.GetLength()), len(deltas)) {
			n += deltas[0]
			counts[index] = n
			index, deltas = index+1, deltas[1:]
		}
	}
	return counts
}

func (h histogram) count() (n float64) {
	for _, b := range h {
		n += b.count
	}
	return n
}

// quantile is between the bounds of the bucket that it is in.
func (h histogram) quantile(q float64) float64 {
	left := q * h.count()
	for _, b := range h {
		if left <= b.count {
			return b.lower + (b.upper-b.lower)*left/b.count
		}
		left -= b.count
	}
	return 0
}
