package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/parley-asp/parley/server/activity"
)

const (
	scrapeWithin   = 5 * time.Second
	maxScrapeBytes = 1 << 20
)

// A scrape is what the monitors of brokers said at one time, and why those that did not.
type scrape struct {
	activity.Sample
	failed []error
}

// scrapeAll asks all monitors at once.
func scrapeAll(ctx context.Context, monitors []string) scrape {
	s := scrape{activity.Sample{At: time.Now(), Brokers: make([]activity.Families, len(monitors))}, make([]error, len(monitors))}
	var asked sync.WaitGroup
	for i, monitor := range monitors {
		asked.Go(func() {
			s.Brokers[i], s.failed[i] = scrapeOne(ctx, monitor)
		})
	}
	asked.Wait()
	return s
}

// scrapeOne reads metrics as protobuf, which alone has native histograms.
func scrapeOne(ctx context.Context, monitor string) (activity.Families, error) {
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
	families := activity.Families{}
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
	if slices.Contains(s.failed, nil) {
		return nil
	}
	return s.failed[0]
}
