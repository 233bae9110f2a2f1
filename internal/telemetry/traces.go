package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// scope is the instrumentation scope of all spans.
const scope = "github.com/parley-asp/parley"

// An Exporter says where spans go.
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

// Traces exports the spans of one broker. A nil one makes none.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exports  *exports
}

// OpenTraces begins to export the spans of a broker, by its id; nil without a URL. The SDK's own variables
// (OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME and others) count too.
func OpenTraces(e Exporter, version, id string, log *zap.Logger) (*Traces, error) {
	if err := e.Check(); err != nil || e.URL == "" {
		return nil, err
	}
	base, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	x := &exports{log: log}
	x.ctx, x.stop = context.WithCancel(context.Background())
	otel.SetLogger(logr.Discard()) // it would print headers that it cannot read
	otel.SetErrorHandler(otel.ErrorHandlerFunc(x.failed))
	if x.Exporter, err = otlptracehttp.New(x.ctx, otlptracehttp.WithEndpointURL(base.JoinPath("v1/traces").String())); err != nil {
		return nil, fmt.Errorf("--otlp: %w", err)
	}
	about, err := resource.New(x.ctx,
		resource.WithAttributes(ofBroker(version, id)...),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(x), sdktrace.WithResource(about)}
	if e.Sample < 1 { // else OTEL_TRACES_SAMPLER counts, which is parent-based by default
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(e.Sample))))
	}
	t := &Traces{provider: sdktrace.NewTracerProvider(options...), exports: x}
	t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(conventions))
	return t, nil
}

// closesWithin is how long the last spans may take to leave.
const closesWithin = 3 * time.Second

// Close exports the last spans, as far as the collector takes them in time.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closesWithin)
	defer cancel()
	defer t.exports.stop() // of an export that hangs
	if err := t.provider.Shutdown(ctx); err != nil {
		t.exports.failed(err)
	}
}

// exports sends batches one after the other. The queue before it drops what does not fit.
type exports struct {
	*otlptrace.Exporter
	ctx  context.Context //nolint:containedctx // of all exports
	stop context.CancelFunc
	log  *zap.Logger
	said atomic.Int64 // when a failure was logged last, Unix seconds
}

// ExportSpans implements sdktrace.SpanExporter.
func (x *exports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(x.ctx, cancel)
	defer stop()
	if err := x.Exporter.ExportSpans(ctx, spans); err != nil {
		x.failed(err)
	}
	return nil // the SDK would log each
}

const (
	failuresEvery = 60  // seconds
	maxFailure    = 300 // characters: the collector's words may be among them
)

// failed logs what is wrong with the export, at most once a minute.
func (x *exports) failed(err error) {
	now, last := time.Now().Unix(), x.said.Load()
	if now-last >= failuresEvery && x.said.CompareAndSwap(last, now) {
		x.log.Warn("exporting traces", zap.String("error", fmt.Sprintf("%.*s", maxFailure, err.Error())))
	}
}
