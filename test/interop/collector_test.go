package interop

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// collector starts the OTLP receiver of the OpenTelemetry Collector. Its sinks have what came.
func collector(t *testing.T) (url string, spans *consumertest.TracesSink, metrics *consumertest.MetricsSink, logs *consumertest.LogsSink) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	must(err)
	must(free.Close())
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": free.Addr().String()}},
	}).Unmarshal(config))
	spans, metrics, logs = &consumertest.TracesSink{}, &consumertest.MetricsSink{}, &consumertest.LogsSink{}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), settings, config, spans)
	must(err)
	_, err = factory.CreateMetrics(t.Context(), settings, config, metrics) // one receiver has all three
	must(err)
	_, err = factory.CreateLogs(t.Context(), settings, config, logs)
	must(err)
	must(traces.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		if err := traces.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + free.Addr().String(), spans, metrics, logs
}

// TestCollector: the OpenTelemetry Collector takes the traces, metrics and log that a broker exports. An act is a span
// by its name.
func TestCollector(t *testing.T) {
	url, spans, metrics, logs := collector(t)
	b := serve(t, "--otlp", url, "--log-level", "debug")
	b.deal(0)
	b.stop()

	acts := map[string]int{}
	for _, batch := range spans.AllTraces() {
		for _, of := range batch.ResourceSpans().All() {
			named(t, of.Resource())
			for _, in := range of.ScopeSpans().All() {
				for _, span := range in.Spans().All() {
					if session, has := span.Attributes().Get("gen_ai.conversation.id"); has && session.Str() != "" && strings.ToUpper(span.Name()) == span.Name() {
						acts[span.Name()]++
					}
				}
			}
		}
	}
	if want := map[string]int{"PROPOSE": 2, "ACCEPT": 2, "CLOSE": 1}; !maps.Equal(acts, want) {
		t.Errorf("spans of acts: %v, want %v", acts, want)
	}
	var families []string
	for _, batch := range metrics.AllMetrics() {
		for _, of := range batch.ResourceMetrics().All() {
			named(t, of.Resource())
			for _, in := range of.ScopeMetrics().All() {
				for _, metric := range in.Metrics().All() {
					families = append(families, metric.Name())
				}
			}
		}
	}
	if !slices.Contains(families, "parley_acts_total") {
		t.Errorf("there is no metric of acts among %v", families)
	}
	for _, batch := range logs.AllLogs() {
		for _, of := range batch.ResourceLogs().All() {
			named(t, of.Resource())
		}
	}
	if logs.LogRecordCount() == 0 {
		t.Error("no line of the log came")
	}
}

// named requires the resource to be a broker.
func named(t *testing.T, of pcommon.Resource) {
	t.Helper()
	if name, _ := of.Attributes().Get("service.name"); name.AsString() != "parley" {
		t.Errorf("a resource is %v", of.Attributes().AsRaw())
	}
}
