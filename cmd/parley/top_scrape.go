package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	scrapeWithin   = 5 * time.Second
	maxScrapeBytes = 1 << 20
)

// A scrape is what the monitors of brokers said at one time.
type scrape struct {
	at      time.Time
	brokers []scraped
}

// A scraped is what one monitor said.
type scraped struct {
	monitor  string // HOST:PORT
	err      error
	families map[string]*dto.MetricFamily
}

// scrapeAll asks all monitors at once.
func scrapeAll(ctx context.Context, monitors []string) scrape {
	s := scrape{time.Now(), make([]scraped, len(monitors))}
	var asked sync.WaitGroup
	for i, monitor := range monitors {
		asked.Go(func() {
			families, err := scrapeOne(ctx, monitor)
			s.brokers[i] = scraped{monitor, err, families}
		})
	}
	asked.Wait()
	return s
}

// scrapeOne reads metrics as protobuf, which alone has native histograms.
func scrapeOne(ctx context.Context, monitor string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+monitor+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not HOST:PORT", monitor)
	}
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	r.Header.Set("Accept", string(format))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	if answer.StatusCode != http.StatusOK || expfmt.ResponseFormat(answer.Header).FormatType() != expfmt.TypeProtoDelim {
		return nil, fmt.Errorf("http://%s/metrics answers %s, not with metrics: is it the --monitor of a broker?", monitor, answer.Status)
	}
	families := map[string]*dto.MetricFamily{}
	for d := expfmt.NewDecoder(io.LimitReader(answer.Body, maxScrapeBytes), format); ; {
		f := new(dto.MetricFamily)
		if err := d.Decode(f); errors.Is(err, io.EOF) {
			return families, nil
		} else if err != nil {
			return nil, fmt.Errorf("http://%s/metrics: %w", monitor, err)
		}
		families[f.GetName()] = f
	}
}

// failure is why no monitor answered; nil if one did.
func (s scrape) failure() error {
	for _, b := range s.brokers {
		if b.err == nil {
			return nil
		}
	}
	return s.brokers[0].err
}

// since is in seconds.
func (s scrape) since(before scrape) float64 { return s.at.Sub(before.at).Seconds() }

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
func (b scraped) values(family string, labels ...string) map[string]float64 {
	all := map[string]float64{}
	for _, m := range b.families[family].GetMetric() {
		all[labelled(m, labels)] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return all
}

// summed is a gauge of all brokers together.
func (s scrape) summed(family, label string) map[string]float64 {
	all := map[string]float64{}
	for _, b := range s.brokers {
		for of, v := range b.values(family, label) {
			all[of] += v
		}
	}
	return all
}

// shared is a gauge that is the same at every broker, or whose highest value matters.
func (s scrape) shared(family, label string) map[string]float64 {
	all := map[string]float64{}
	for _, b := range s.brokers {
		for of, v := range b.values(family, label) {
			all[of] = max(all[of], v)
		}
	}
	return all
}

// rates are of a counter: what each second added to it, at all brokers that answered both times. A counter that
// fell began anew.
func (s scrape) rates(before scrape, family string, labels ...string) map[string]float64 {
	all := map[string]float64{}
	for i, b := range s.brokers {
		if b.err != nil || before.brokers[i].err != nil {
			continue
		}
		was := before.brokers[i].values(family, labels...)
		for of, v := range b.values(family, labels...) {
			if v >= was[of] {
				v -= was[of]
			}
			all[of] += v / s.since(before)
		}
	}
	return all
}

// A histogram has buckets in the order of their bounds.
type histogram []bucket

type bucket struct {
	lower, upper, count float64
}

// times are what a native histogram was told since the scrape before, at all brokers that answered both times.
func (s scrape) times(before scrape, family, label string) map[string]histogram {
	all := map[string]histogram{}
	for i, b := range s.brokers {
		if b.err != nil || before.brokers[i].err != nil {
			continue
		}
		was := map[string]*dto.Histogram{}
		for _, m := range before.brokers[i].families[family].GetMetric() {
			was[labelled(m, []string{label})] = m.GetHistogram()
		}
		for _, m := range b.families[family].GetMetric() {
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
