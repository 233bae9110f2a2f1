package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/bridges/otelzap"
	promotel "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"
)

// An Exporter says where traces, metrics and logs go.
type Exporter struct {
	URL    string  // base URL of an OTLP/HTTP collector; "" exports nothing
	Sample float64 // the share of traces that begin here, 0 to 1; a trace that began elsewhere is sampled as it says
}

// Check refuses what no collector can be reached at. It repeats nothing of a URL that may have a password.
func (e Exporter) Check() error {
	if !(e.Sample >= 0 && e.Sample <= 1) { // NaN too
		return errors.New("--otlp-sample is 0 to 1")
	}
	if e.URL == "" {
		return nil
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("--otlp is a URL such as http://localhost:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("--otlp has a host and a path only: secrets are in OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// An Export sends what one broker traces, counts and logs to a collector. The zero Export sends nothing.
type Export struct {
	Traces *Traces // nil without a URL

	resource *resource.Resource
	base     *url.URL
	failures *failures
	ends     []func(context.Context) error // each sends what is left
}

// Open begins to export what a broker does, by its id. The SDK's own variables (OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_SERVICE_NAME and others) count too; OTEL_TRACES_EXPORTER=none and its like leave a signal out.
func Open(e Exporter, families *Metrics, version, id string, log *zap.Logger) (*Export, error) {
	x := &Export{}
	if err := e.Check(); err != nil || e.URL == "" {
		return x, err
	}
	var err error
	if x.base, err = url.Parse(e.URL); err != nil {
		return x, err
	}
	x.failures = &failures{log: log}
	otel.SetLogger(logr.Discard()) // it would print headers that it cannot read
	otel.SetErrorHandler(otel.ErrorHandlerFunc(x.failures.add))
	if x.resource, err = resource.New(context.Background(),
		resource.WithAttributes(ofBroker(version, id)...), resource.WithTelemetrySDK(), resource.WithFromEnv()); err != nil {
		return x, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if err = x.openTraces(e, version); err == nil {
		err = x.openMetrics(families)
	}
	if err != nil {
		return x, fmt.Errorf("--otlp: %w", err)
	}
	return x, nil
}

// leftOut reports whether a variable of OpenTelemetry switches a signal off.
func leftOut(signal string) bool { return os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" }

// at is where a signal goes.
func (x *Export) at(signal string) string { return x.base.JoinPath("v1", signal).String() }

// openMetrics sends the families of /metrics, by default once a minute.
func (x *Export) openMetrics(families *Metrics) error {
	if leftOut("METRICS") {
		return nil
	}
	exporter, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(x.at("metrics")))
	if err != nil {
		return err
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(promotel.NewMetricProducer(promotel.WithGatherer(families.registry))))
	x.ends = append(x.ends, metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(x.resource)).Shutdown)
	return nil
}

// Log returns a log whose lines go to the collector, too.
func (x *Export) Log(log *zap.Logger) (*zap.Logger, error) {
	if x.base == nil || leftOut("LOGS") {
		return log, nil
	}
	exporter, err := otlploghttp.New(context.Background(), otlploghttp.WithEndpointURL(x.at("logs")))
	if err != nil {
		return log, fmt.Errorf("--otlp: %w", err)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(x.resource))
	x.ends = append(x.ends, provider.Shutdown)
	also, err := zapcore.NewIncreaseLevelCore(otelzap.NewCore(scope, otelzap.WithLoggerProvider(provider)), log.Core()) // at the log's level, whatever that is by then
	if err != nil {
		return log, fmt.Errorf("--otlp: %w", err)
	}
	return log.WithOptions(zap.WrapCore(func(own zapcore.Core) zapcore.Core { return zapcore.NewTee(own, also) })), nil
}

// closesWithin is how long what is left may take to leave.
const closesWithin = 3 * time.Second

// Close exports what is left, as far as the collector takes it in time.
func (x *Export) Close() {
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closesWithin)
	defer cancel()
	var all errgroup.Group
	for _, end := range x.ends {
		all.Go(func() error { return end(ctx) })
	}
	if err := all.Wait(); err != nil {
		x.failures.add(err)
	}
}

// failures are logged, at most one a minute.
type failures struct {
	log  *zap.Logger
	said atomic.Int64 // when one was logged last, Unix seconds
}

const (
	failuresEvery = 60  // seconds
	maxFailure    = 300 // characters: the collector's words may be among them
)

// add logs what is wrong with the export, unless something was within the last minute.
func (x *failures) add(err error) {
	now, last := time.Now().Unix(), x.said.Load()
	if now-last >= failuresEvery && x.said.CompareAndSwap(last, now) {
		x.log.Warn("exporting to the OpenTelemetry collector", zap.String("error", fmt.Sprintf("%.*s", maxFailure, err.Error())))
	}
}
