package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of all spans and lines of the log.
const scope = "github.com/parley-asp/parley"

// Traces exports the spans of one broker. A nil one makes none.
type Traces struct{ tracer trace.Tracer }

// openTraces exports the spans.
func (x *Export) openTraces(e Exporter, version string) error {
	if leftOut("TRACES") {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(x.at("traces")))
	if err != nil {
		stop()
		return err
	}
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithBatcher(&exports{exporter, ctx, x.failures}), sdktrace.WithResource(x.resource),
	}
	if e.Sample < 1 { // else OTEL_TRACES_SAMPLER counts, which is parent-based by default
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(e.Sample))))
	}
	provider := sdktrace.NewTracerProvider(options...)
	x.Traces = &Traces{provider.Tracer(scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(conventions))}
	x.ends = append(x.ends, func(ctx context.Context) error {
		defer stop() // of an export that hangs
		return provider.Shutdown(ctx)
	})
	return nil
}

// exports sends batches one after the other. The queue before it drops what does not fit.
type exports struct {
	*otlptrace.Exporter
	ctx      context.Context //nolint:containedctx // of all exports
	failures *failures
}

// ExportSpans implements sdktrace.SpanExporter.
func (x *exports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(x.ctx, cancel)
	defer stop()
	if err := x.Exporter.ExportSpans(ctx, spans); err != nil {
		x.failures.add(err)
	}
	return nil // the SDK would log each
}
